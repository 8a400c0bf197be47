"""Why a month cannot be closed, and what a close of it would rest on.

Here: what is asked of the month. Open breaks do not prevent a close: they are copied with it. Not
here: closing it (freeze), and what is asked of who signs it (signing).
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import duckdb

from pipelines.core.proof import rests_on_one_reading
from pipelines.core.text import counted, is_one_of, printable
from pipelines.finance.books_state import why_outdated
from pipelines.finance.inputs import standing_closes
from pipelines.finance.mapping import REMEDY, Mapping, mapping_digest, read_mapping
from pipelines.finance.reconcile.close_copy import MAPPING, require_intact
from pipelines.finance.reconcile.closed_rows import month_after
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.roles import SIDES
from pipelines.finance.reconciled import EVALUATED, create_rows, open_reconciled
from pipelines.finance.signing import not_assigned, signers_of
from pipelines.metadata.scans import held_scans
from pipelines.metadata.tables import Close, Scan
from pipelines.versions.change import require_unchanged
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows
from pipelines.warehouse.version_files import Version

BUILD: Final = "Run `partner-sync reconcile`, review the month, then close it."
SYNC: Final = "Run `partner-sync sync`, review the month, then close it."
TIME: Final = "%Y-%m-%d %H:%M %Z"
TERMS: Final = """
SELECT basis.as_of, basis.time_zone, basis.grace_days FROM reconciliation.basis AS basis
"""
# Whether the newest scan is complete, and whether the connection has records of the month.
PROOFS: Final = """
SELECT
    loads.connection, loads.stream, max_by(loads.complete, loads.valid_time) AS is_complete,
    max_by(loads.started_at, loads.valid_time) FILTER (loads.complete) AS began_at,
    max_by(loads.method, loads.valid_time) AS method,
    max_by(loads.chains, loads.valid_time) AS chains,
    loads.connection IN (
        SELECT used.connection FROM temp.used AS used WHERE used.month = $month
        UNION ALL
        SELECT billed.connection FROM temp.billed AS billed WHERE billed.month = $month
    ) AS has_month
FROM meta.loads AS loads
GROUP BY loads.connection, loads.stream
ORDER BY ALL
"""
# Records that are in one of two months by another mapping, and in the other one now.
MOVED: Final = """
SELECT count(*)
FROM ({then}) AS before
JOIN temp.{view} AS now
    ON now.connection = before.connection AND now._key = before._key
WHERE (before.month, now.month) IN (($this, $other), ($other, $this))
"""
# Of closed months before: what a correction of them would be is not known.
UNREAD: Final = """
SELECT
    changes.month, count(DISTINCT (changes.side, changes.connection, changes.id)), min(changes.id)
FROM reconciliation.changed_records AS changes
WHERE changes.is_unread AND NOT changes.is_otherwise AND changes.month < $month AND {is_chosen}
GROUP BY changes.month
ORDER BY changes.month
"""
Refusals = Iterator[tuple[str, str]]
"""Why a month cannot be closed, and what to do; the first counts."""


def prepare_month(
    stores: Stores, month: date, connections: list[str] | None, accept_open: str = ""
) -> Row:
    """Return what keeps a month from being closed (`refusals`), and what its proofs rest on.

    `connections` are those for which it is to be closed; None: all. `lists` are those that are
    compared; `one_reading`: their proof holds if no row changed its place meanwhile. Raises
    PartnerSyncError.
    """
    is_asked = stores.settings.approval != "declared" and not accept_open
    with open_reconciled(stores, "summary") as (version, db):
        require_unchanged(stores.metadata, version)
        refusals = [
            {"message": f"{month:%Y-%m} cannot be closed: {why.rstrip('.')}.", "remedy": remedy}
            for why, remedy in chain(
                find_refusals(stores, month, connections, version, db),
                not_assigned(month, connections, db) if is_asked else (),
            )
        ]
        lists = []
        for proof in fetch_rows(db, PROOFS, {"month": month}):
            is_asked = proof["has_month"] and _is_among(proof["connection"], connections)
            if is_asked and proof["stream"] in SIDES:
                one_reading = rests_on_one_reading(proof["method"], proof["chains"])
                lists.append(
                    {
                        "connection": proof["connection"],
                        "stream": proof["stream"],
                        "began_at": proof["began_at"],
                        "complete": proof["is_complete"],
                        "one_reading": one_reading,
                    }
                )
    return {"month": f"{month:%Y-%m}", "refusals": refusals, "lists": lists}


def end_of(month: date, grace_days: int, time_zone: str) -> datetime:
    """Return when a month and its grace are over: its proofs are readings that began later."""
    day = month_after(month) + timedelta(days=grace_days)
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone))


def basis_of(lists: Iterable[Row]) -> str:
    """Return which lists rest on one reading, as a sentence; empty if none does."""
    one = [f"{row['connection']}/{row['stream']}" for row in lists if row["one_reading"]]
    if not one:
        return ""
    return (
        f"The month rests on one chain of pages of {', '.join(one)}: it is proven complete if no "
        "row changed its place while the list was read."
    )


def find_refusals(
    stores: Stores,
    month: date,
    connections: list[str] | None,
    version: Version,
    db: duckdb.DuckDBPyConnection,
) -> Refusals:
    """Yield why a month of open books cannot be closed for some connections (None: for all).

    Raises PartnerSyncError.
    """
    reason = _not_evaluated(db)
    if reason:  # nothing else can be told without totals
        yield f"summary is not evaluated: {reason}", REMEDY
        return
    create_rows(db)
    yield from _closed(stores, month, db)
    if why_outdated(stores):
        why = f"the books of version {version.number} lack newer data, decisions, closes or mapping"
        yield why, BUILD
    else:
        yield from _unread_before(month, connections, db)
    yield from _not_proven(stores, month, connections, db)


def _not_evaluated(db: duckdb.DuckDBPyConnection) -> str:
    """Return why there are no totals of months; empty if there are."""
    try:
        ((is_evaluated, reason),) = db.execute(EVALUATED, {"table": "summary"}).fetchall()
    except duckdb.CatalogException:
        return "no books were made. Run `partner-sync reconcile`"
    return "" if is_evaluated else str(reason)


def _closed(stores: Stores, month: date, db: duckdb.DuckDBPyConnection) -> Refusals:
    """Yield that a month is closed, or that records moved between it and another closed one."""
    present = mapping_digest(stores.home.mapping_file)
    for folder, close in standing_closes(stores).items():
        if close.month == month:
            why = f"{signers_of(close)} closed it at {close.closed_at:{TIME}}"
            yield why, "Run `partner-sync close reopen` with --reason first."
        require_intact(folder, close)
        if mapping_digest(folder / MAPPING) != present:
            yield from _moved(db, month, close, folder)


def _moved(db: duckdb.DuckDBPyConnection, month: date, close: Close, folder: Path) -> Refusals:
    """Yield that records moved between a month and one that was closed with another mapping."""
    sides = Sides(db, read_mapping(folder / MAPPING) or Mapping())
    months = {"this": month, "other": close.month}
    for view in ("used", "bills"):
        query = MOVED.format(then=sides.query(view), view=view)
        ((moved,),) = db.execute(query, months).fetchall()
        if moved:
            why = (
                f"{close.month:%Y-%m} was closed with another mapping, and "
                f"{counted(moved, 'record')} would be in both months or in none"
            )
            remedy = f"Reopen {close.month:%Y-%m}, and close it again with the current mapping."
            yield why, remedy


def _unread_before(
    month: date, connections: list[str] | None, db: duckdb.DuckDBPyConnection
) -> Refusals:
    """Yield which closed months before have records that cannot be read any more.

    Their corrections wait. Without them, a copy would have such a record as gone.
    """
    query = UNREAD.format(is_chosen=is_one_of("changes.connection", connections))
    try:
        found = db.execute(query, {"month": month}).fetchall()
    except duckdb.CatalogException:  # no month is compared with its copy
        return
    for before, records, example in found:
        why = (
            f"{counted(records, 'record')} of {before:%Y-%m}, which is closed, cannot be read now, "
            f"such as {printable(example)}"
        )
        remedy = f"Correct the values, see `reconciliation.unreadable`, or reopen {before:%Y-%m}."
        yield why, remedy


def _not_proven(
    stores: Stores, month: date, connections: list[str] | None, db: duckdb.DuckDBPyConnection
) -> Refusals:
    """Yield what is not proven complete after the month and its grace.

    Of connections that are not configured any more, those count that have records of the month.
    """
    ((as_of, time_zone, grace_days),) = db.execute(TERMS).fetchall()
    if month > as_of.date():
        yield f"it has not begun: the data ends at {as_of:{TIME}}", "Check the month."
    ends = end_of(month, grace_days, time_zone)
    if as_of < ends:
        why = f"it ends at {ends:{TIME}}, with grace_days, and the data ends at {as_of:{TIME}}"
        yield why, f"Wait until then. {SYNC}"
    yield from _not_complete(stores, month, connections, db, ends)


def _not_complete(
    stores: Stores,
    month: date,
    connections: list[str] | None,
    db: duckdb.DuckDBPyConnection,
    ends: datetime,
) -> Refusals:
    """Yield which lists are not proven complete by a reading that began after a moment.

    Nor are those whose newest scan waits for a person: the published rows may lack what it shows.
    """
    with stores.metadata.transaction() as session:
        held = {(scan.connection, scan.stream): scan for scan in held_scans(session)}
    proofs = _proofs(db, month, connections)
    with_month = {name for name, proof in proofs.items() if proof["has_month"]}
    names = set(with_month)
    for connection, streams in stores.lists().items():
        if _is_among(connection, connections):
            names.update((connection, stream.name) for stream in streams)
    for connection, stream in sorted(names):
        if stream not in SIDES:
            continue
        why = _why_not_complete(proofs.get((connection, stream)), ends)
        scan = held.get((connection, stream))
        if scan is not None:
            yield _why_held(scan)
        elif why:
            yield f"{stream} of {connection} {why}", SYNC
    if not with_month:
        yield "the published version has no record of it", "Check the month and the mapping."


def _proofs(
    db: duckdb.DuckDBPyConnection, month: date, connections: list[str] | None
) -> dict[tuple[str, str], Row]:
    """Return what is proven of the lists of some connections, by connection and stream."""
    proofs = {}
    for proof in fetch_rows(db, PROOFS, {"month": month}):
        if _is_among(proof["connection"], connections):
            proofs[proof["connection"], proof["stream"]] = proof
    return proofs


def _why_held(scan: Scan) -> tuple[str, str]:
    """Return that a scan waits for a person, and what the person can do."""
    list_name = f"{scan.connection} {scan.stream}"
    began = f"{scan.started_at.astimezone(UTC):{TIME}}"
    why = f"the scan of {scan.stream} of {scan.connection} that began at {began} waits for approval"
    approve = f'partner-sync approve {list_name} --reason "..."'
    remedy = f"Run `{approve}`, or the same with --reject; then review the month."
    return f"{why}: {scan.reason}", remedy


def _why_not_complete(proof: Row | None, ends: datetime) -> str:
    """Return why no complete reading of a list began after a moment; empty if one did."""
    if proof is None:
        return "is not loaded"
    if not proof["is_complete"]:
        return "is not proven complete"
    if proof["began_at"] < ends:
        return f"was read at {proof['began_at']:{TIME}}, before {ends:{TIME}}"
    return ""


def _is_among(connection: str, connections: list[str] | None) -> bool:
    """Return whether a month is to be closed for a connection (None: for all)."""
    return connections is None or connection in connections
