"""Reads what the report of a version shows: the rows of each query of `sql/`."""

from dataclasses import dataclass
from decimal import Context, Decimal
from importlib.resources import files
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.config.mapping import REMEDY

QUERIES: Final = (
    *("proofs", "as_of", "currencies", "months", "trend", "recent", "beside", "not_checked"),
    *("breaks", "severities", "uncertain", "partners", "ageing", "apart", "late", "gaps"),
    *("last_close", "changed_closes"),
)
"""Each becomes a temporary table, from which the next ones may read."""
WITHOUT_AMOUNTS: Final = ("proofs", "as_of")
RULES: Final = "SELECT rules.* FROM reconciliation.rules AS rules"
EXACT: Final = Context(prec=100)  # the default would round a difference of 38 digits to 28
Row = dict[str, Any]


class Earlier(NamedTuple):
    """What the differences by currency were at an earlier time: a version or a close."""

    title: str
    differences: dict[str | None, Decimal]

    def change(self, now: Row) -> Decimal:
        """Return by how much the difference of a currency has changed since."""
        return EXACT.subtract(now["difference"], self.differences.get(now["currency"], Decimal(0)))


@dataclass(frozen=True)
class Figures:
    """Everything that the report of a version shows; amounts are exact.

    `tables` has the rows of each query, `rules` says of each rule and table of reconciliation
    whether it was evaluated. `problem` is why usage was not compared with billing; then only the
    proofs have rows.
    """

    version: int
    problem: str
    rules: dict[str, Row]
    tables: dict[str, list[Row]]
    previous: Earlier | None = None
    closed: Earlier | None = None


def read_figures(db: duckdb.DuckDBPyConnection, version: int) -> Figures:
    """Return the figures of a version, without those of earlier ones. Raises duckdb.Error."""
    rules = {row["rule"]: row for row in _fetch(db, RULES)}
    problem = _find_problem(rules)
    asked = WITHOUT_AMOUNTS if problem else QUERIES
    tables = {name: _evaluate(db, name) if name in asked else [] for name in QUERIES}
    return Figures(version, problem, rules, tables)


def read_earlier(db: duckdb.DuckDBPyConnection, title: str) -> Earlier | None:
    """Return the differences of another version; None where it has none."""
    if _find_problem({row["rule"]: row for row in _fetch(db, RULES)}):
        return None
    rows = _evaluate(db, "currencies")
    return Earlier(title, {row["currency"]: row["difference"] for row in rows})


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
    try:
        for statement in statements:
            db.execute(statement)
    except duckdb.CatalogException:  # a table that could not be evaluated may not even be empty
        return []
    names = [column[0] for column in db.description or ()]
    return [dict(zip(names, row, strict=True)) for row in db.fetchall()]
