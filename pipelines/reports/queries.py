"""Reads what the report of a version shows: the rows of each query of `sql/`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal
from importlib.resources import files
from typing import Final, NamedTuple

import duckdb

from pipelines.config.mapping import REMEDY
from pipelines.warehouse.duckdb_file import Row, fetch_rows

QUERIES: Final = (
    *("proofs", "as_of", "currencies", "months", "trend", "recent", "beside", "not_checked"),
    *("breaks", "more_breaks", "severities", "uncertain", "partners", "ageing", "reasons"),
    *("apart", "late", "gaps", "last_close", "changed_closes", "newest_usage"),
)
"""Each becomes a temporary table, from which the next ones may read."""
WITHOUT_AMOUNTS: Final = ("proofs", "as_of")
SCANS: Final = "SELECT loads.scan_id FROM meta.loads AS loads"
RULES: Final = "SELECT rules.* FROM reconciliation.rules AS rules"
OPEN_BREAKS: Final = """
SELECT breaks.break_id
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
"""
NEWS: Final = """
SELECT
    loads.stream, sum(loads.new)::BIGINT AS new, sum(loads.changed)::BIGINT AS changed,
    sum(loads.deleted)::BIGINT AS deleted
FROM meta.loads AS loads
WHERE loads.stream IN ('usage', 'billing')
    AND NOT list_contains($scans::VARCHAR[], loads.scan_id)
GROUP BY loads.stream
HAVING sum(loads.new + loads.changed + loads.deleted) > 0
ORDER BY loads.stream DESC
"""
EXACT: Final = Context(prec=100)  # the default would round a difference of 38 digits to 28


class Earlier(NamedTuple):
    """The amounts of each currency at an earlier time: that of a version or a close.

    `scans` are those that the version held, `as_of` is the time of its data, `breaks` were open.
    """

    title: str
    currencies: dict[str | None, Row]
    scans: list[str]
    as_of: datetime | None
    breaks: frozenset[str]

    def change(self, now: Row, name: str = "difference") -> Decimal:
        """Return by how much an amount of a currency has changed since."""
        before = self.currencies.get(now["currency"], {})
        return EXACT.subtract(now[name], before.get(name, Decimal(0)))


@dataclass(frozen=True)
class Figures:
    """Everything that the report of a version shows; amounts are exact.

    `tables` has the rows of each query, `rules` says of each rule and table of reconciliation
    whether it was evaluated. `problem` is why usage was not compared with billing; then only the
    proofs have rows. `open_breaks` are numbers of breaks. `news` counts usage records and bills
    that changed since `previous`.
    """

    version: int
    problem: str
    rules: dict[str, Row]
    tables: dict[str, list[Row]]
    open_breaks: frozenset[str] = frozenset()
    previous: Earlier | None = None
    closed: Earlier | None = None
    news: Sequence[Row] = ()

    @property
    def new_breaks(self) -> int:
        """The number of breaks that are open and were not in the previous version."""
        return len(self.open_breaks - self.previous.breaks) if self.previous else 0

    @property
    def gone_breaks(self) -> int:
        """The number of breaks that were open in the previous version and are not any more."""
        return len(self.previous.breaks - self.open_breaks) if self.previous else 0


def read_figures(db: duckdb.DuckDBPyConnection, version: int) -> Figures:
    """Return the figures of a version, without those of earlier ones. Raises duckdb.Error."""
    rules = {row["rule"]: row for row in _fetch(db, RULES)}
    problem = _find_problem(rules)
    asked = WITHOUT_AMOUNTS if problem else QUERIES
    tables = {name: _evaluate(db, name) if name in asked else [] for name in QUERIES}
    return Figures(version, problem, rules, tables, _open_breaks(db))


def read_earlier(db: duckdb.DuckDBPyConnection, title: str) -> Earlier | None:
    """Return the amounts of another version; None where it has none."""
    if _find_problem({row["rule"]: row for row in _fetch(db, RULES)}):
        return None
    _proofs, as_of, currencies = (_evaluate(db, each) for each in (*WITHOUT_AMOUNTS, "currencies"))
    scans = [row["scan_id"] for row in _fetch(db, SCANS)]
    amounts = {row["currency"]: row for row in currencies}
    return Earlier(title, amounts, scans, as_of[0]["as_of"], _open_breaks(db))


def read_news(db: duckdb.DuckDBPyConnection, before: Earlier) -> list[Row]:
    """Return how many usage records and bills are new, changed and deleted since."""
    return fetch_rows(db, NEWS, {"scans": before.scans})


def _open_breaks(db: duckdb.DuckDBPyConnection) -> frozenset[str]:
    return frozenset(row["break_id"] for row in _fetch(db, OPEN_BREAKS))


def _find_problem(rules: dict[str, Row]) -> str:
    """Return why usage was not compared with billing, and what to do; empty if it was.

    The summary needs all rules and tables without which no figure is right.
    """
    if not rules:
        return "This version has no reconciliation. Run `partner-sync versions build`."
    reason = (rules["summary"]["reason"] or "").rstrip(".")
    if not reason or "partner-sync" in reason:
        return reason and f"{reason}."
    remedy = "Report it as a defect of partner-sync." if "failed" in reason else REMEDY
    return f"{reason}. {remedy}"


def _evaluate(db: duckdb.DuckDBPyConnection, name: str) -> list[Row]:
    query = files("pipelines.reports").joinpath(f"sql/{name}.sql").read_text("utf-8")
    return _fetch(db, f"CREATE TEMP TABLE {name} AS {query}", f"FROM {name}")


def _fetch(db: duckdb.DuckDBPyConnection, *statements: str) -> list[Row]:
    """Return the rows of the last statement; none where a table is missing."""
    *before, last = statements
    with suppress(duckdb.CatalogException):  # one that could not be evaluated may not even be empty
        for statement in before:
            db.execute(statement)
        return fetch_rows(db, last)
    return []
