"""What checks look at: the published version and the metadata database, read once."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

import duckdb
import msgspec
from sqlalchemy import select

from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding
from pipelines.core.text import printable, quote_identifier
from pipelines.metadata import runs, scans
from pipelines.metadata.decisions import unfinished_erasures
from pipelines.metadata.engine import Metadata
from pipelines.metadata.findings import last_notifications
from pipelines.metadata.tables import ApiSpec, Decision, Notification, Run, Scan
from pipelines.metadata.versions import KEPT, list_versions
from pipelines.warehouse.duckdb_file import Version, Warehouse

T = TypeVar("T")
NO_ROW: Final = "SELECT '' AS stream, '' AS connection WHERE false"
NOT_FITTING: Final = """
SELECT '{stream}' AS stream, history._connection AS connection
FROM history.{table} AS history
WHERE history._valid_to IS NULL AND history._extra IS NOT NULL
"""
LISTS: Final = """
WITH not_fitting AS ({not_fitting})
SELECT
    loads.connection, loads.stream, loads.complete, loads.ended_at, loads.rows, loads.sentence,
    freshness.last_complete_at AS complete_at,
    (SELECT count(*) FROM quarantine.records AS records
        WHERE (records.connection, records.stream) = (loads.connection, loads.stream)
    ) AS in_quarantine,
    (SELECT count(*) FROM not_fitting
        WHERE (not_fitting.connection, not_fitting.stream) = (loads.connection, loads.stream)
    ) AS not_fitting,
    (SELECT coalesce(list(reported), []) FROM meta.load_findings AS reported
        WHERE reported.scan_id = loads.scan_id) AS findings
FROM meta.freshness AS freshness
JOIN meta.loads AS loads ON loads.scan_id = freshness.last_scan_id
"""


NOT_EVALUATED: Final = """
SELECT rules.rule, rules.reason FROM reconciliation.rules AS rules WHERE NOT rules.evaluated
"""
OPEN_BREAKS: Final = """
SELECT
    breaks.rule, breaks.currency, count(*) AS breaks, sum(breaks.difference) AS difference,
    count(*) FILTER (abs(breaks.difference) >= $amount) AS above
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
GROUP BY breaks.rule, breaks.currency
ORDER BY ALL
"""


class CannotKnow(Exception):
    """Raised where a check has nothing to judge by; the text says what is missing."""


def known(value: T | None, missing: str) -> T:
    """Return a value that is known. Raises CannotKnow."""
    if value is None:
        raise CannotKnow(missing)
    return value


class ListName(NamedTuple):
    """One list of one connection."""

    connection: str
    stream: str

    def __str__(self) -> str:
        return f"{self.connection}/{self.stream}"


class LoadedList(msgspec.Struct, frozen=True):
    """What the published version holds of one list, and how its newest scan ended.

    `complete_at` is the end of the newest complete scan. `not_fitting` counts the current rows with
    values in `_extra`.
    """

    connection: str
    stream: str
    complete: bool
    ended_at: datetime
    rows: int
    sentence: str
    complete_at: datetime | None
    in_quarantine: int
    not_fitting: int
    findings: list[Finding]


class OpenBreaks(NamedTuple):
    """Breaks of one rule and currency that nobody resolved; `above` are those of large amounts."""

    rule: str
    currency: str | None
    breaks: int
    difference: Decimal | None
    above: int


@dataclass(frozen=True)
class Published:
    """The published version. `problem` says why it cannot be read, empty if it can.

    `not_evaluated` says of rules of reconciliation why; None: the version has none.
    """

    version: Version | None = None
    problem: str = ""
    loaded: dict[ListName, LoadedList] = field(default_factory=dict)
    scan_ids: frozenset[str] = frozenset()
    not_evaluated: dict[str, str] | None = None
    open_breaks: tuple[OpenBreaks, ...] = ()


class Limits(NamedTuple):
    """From when on checks fail: hours after a scan, and the amount of a break (None: never)."""

    stale_after_hours: float = 36
    break_amount: Decimal | None = None


@dataclass(frozen=True)
class CheckContext:
    """Everything that checks look at. `lists` are those that the configuration reads.

    Of each list, `newest` is the newest sealed scan; `held` ones wait for a person, `waiting` ones
    for a build. `runs` begin with the newest. `versions` were published and have a file.
    """

    lists: tuple[ListName, ...]
    published: Published
    newest: dict[ListName, Scan | None]
    held: dict[ListName, Scan]
    waiting: dict[ListName, Scan]
    runs: list[Run]
    versions: list[int]
    unknown_scans: frozenset[str]
    unfinished_erasures: list[Decision]
    last_notifications: list[Notification]
    description_changes: dict[str, str | None]
    now: datetime
    limits: Limits

    def require_readable(self) -> None:
        """Raise CannotKnow if the published version is unreadable."""
        if self.published.problem:
            raise CannotKnow(f"The published version cannot be read: {self.published.problem}")

    def load(self, about: ListName) -> LoadedList | None:
        """Return what is published of a list. Raises CannotKnow if the version is unreadable."""
        self.require_readable()
        return self.published.loaded.get(about)

    def require_load(self, about: ListName) -> LoadedList:
        """Return what is published of a list. Raises CannotKnow if nothing is."""
        return known(self.load(about), f"No scan of {about} is published.")

    def require_scan(self, about: ListName) -> Scan:
        """Return the newest sealed scan of a list. Raises CannotKnow without one."""
        return known(self.newest[about], f"{about} was never read to its end.")


def read_context(
    warehouse: Warehouse,
    metadata: Metadata,
    lists: Sequence[ListName],
    now: datetime,
    limits: Limits,
) -> CheckContext:
    """Read what checks look at. Raises StorageFailed where the metadata database fails."""
    published = _read_published(warehouse, limits)
    with metadata.transaction() as session:
        rows = list_versions(session)
        return CheckContext(
            lists=tuple(lists),
            published=published,
            newest={each: scans.newest_sealed(session, *each) for each in lists},
            held=_by_list(scans.held_scans(session)),
            waiting=_by_list(scans.buildable_scans(session, published.scan_ids)),
            runs=runs.recent_runs(session, limit=0),
            versions=[row.number for row in rows if row.status in KEPT],
            unknown_scans=published.scan_ids.difference(session.scalars(select(Scan.scan_id))),
            unfinished_erasures=unfinished_erasures(session),
            last_notifications=last_notifications(session),
            description_changes={
                each.connection: each.change for each in session.scalars(select(ApiSpec))
            },
            now=now,
            limits=limits,
        )


def _by_list(found: list[Scan]) -> dict[ListName, Scan]:
    return {ListName(scan.connection, scan.stream): scan for scan in found}


def _read_published(warehouse: Warehouse, limits: Limits) -> Published:
    version = None
    try:
        version = warehouse.published()
        if version is None:
            return Published()
        with closing(warehouse.open(version.number)) as db:
            scan_ids = db.execute("SELECT loads.scan_id FROM meta.loads AS loads").fetchall()
            loaded = frozenset(scan_id for (scan_id,) in scan_ids)
            return Published(version, "", _read_lists(db), loaded, *_read_breaks(db, limits))
    except (PartnerSyncError, duckdb.Error) as error:
        return Published(version, printable(error))


def _read_breaks(
    db: duckdb.DuckDBPyConnection, limits: Limits
) -> tuple[dict[str, str] | None, tuple[OpenBreaks, ...]]:
    """Return why rules are not evaluated, and what is open; None where nothing is reconciled."""
    try:
        reasons = dict(db.execute(NOT_EVALUATED).fetchall())
    except duckdb.CatalogException:  # a version of before
        return None, ()
    with suppress(duckdb.CatalogException, duckdb.BinderException):  # nothing was ever evaluated
        found = db.execute(OPEN_BREAKS, {"amount": limits.break_amount}).fetchall()
        return reasons, tuple(OpenBreaks(*row) for row in found)
    return reasons, ()


def _read_lists(db: duckdb.DuckDBPyConnection) -> dict[ListName, LoadedList]:
    parts = [
        NOT_FITTING.format(stream=table.partition("__")[0], table=quote_identifier(table))
        for (table,) in db.execute("SHOW TABLES FROM history").fetchall()
    ]
    found = db.sql(LISTS.format(not_fitting=" UNION ALL ".join([NO_ROW, *parts])))
    loads = msgspec.convert(found.to_arrow_table().to_pylist(), list[LoadedList])
    return {ListName(load.connection, load.stream): load for load in loads}
