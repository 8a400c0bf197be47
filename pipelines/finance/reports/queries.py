"""Reads what the report of a version shows: the rows of each query of `sql/`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import Final

import duckdb
import pyarrow as pa

from pipelines.finance.doubt import Doubt
from pipelines.finance.mapping import REMEDY
from pipelines.finance.materiality import create_break_order
from pipelines.finance.reconcile.statements import read_notes
from pipelines.finance.reconcile.views import hold_conclusions
from pipelines.finance.reports.accrual import Accrual
from pipelines.finance.reports.listing import Detail
from pipelines.finance.reports.prepared import Prepared
from pipelines.finance.reports.told import Told
from pipelines.finance.unread import doubts_of, notes_of, read_not_evaluated, read_unread
from pipelines.warehouse.duckdb_file import Row, fetch_rows

WITHOUT_AMOUNTS: Final = ("proofs", "as_of")
# Of a version with which another is compared.
EARLIER: Final = (*WITHOUT_AMOUNTS, "breaks", "currencies")
# Books have these tables only if they were compared with own books.
OF_OWN_BOOKS: Final = ("own_sources", "own_totals")
QUERIES: Final = (
    *EARLIER, "counterparts", "open_breaks", "months", "trend", "places", "recent", "beside",
    "severities", "uncertain", "partners", "ageing", "reasons", "apart", "late", "gaps",
    "last_close", "changed_closes", "newest_usage", "ended_usage", "covered", "news",
    "claim_breaks", "claims", "withheld_breaks", "withheld", "open_by_rule",
    "unseen_values", "unknown_currencies", "read_otherwise", "signed_months", "price_changes",
    "changed_months", "flux", "receivables", "overdue", "to_be_paid", "materiality",
    "small_breaks", "close_remarks", *OF_OWN_BOOKS,
)  # fmt: skip
"""Each becomes a temporary table. A query reads those that `needs` in its first lines names."""
# Of each partner's month, what the books before had.
MONTH_AMOUNTS: Final = """
SELECT
    summary.connection, summary.partner, summary.month, summary.currency,
    summary.used_amount AS used,
    coalesce(summary.billed_amount, 0) + coalesce(summary.credited_amount, 0) AS billed
FROM reconciliation.summary AS summary
"""
SCANS: Final = "SELECT loads.scan_id FROM meta.loads AS loads"


@dataclass(frozen=True)
class Figures:
    """Everything that the report of a version shows; amounts are exact.

    `tables` has the rows of each query, `rules` says of each rule and table of reconciliation
    whether it was evaluated. `problem` is why usage was not compared with billing; then only the
    proofs have rows. `scans` are those that the version holds, `breaks` are all breaks.
    `not_evaluated` are the rules and tables that were not, `unread` the records that cannot be
    read. `doubts` say why there may be other breaks, `notes` what was not needed. `previous` and
    `closed` are earlier versions, the latter at the last close. `amounts` are those of each
    partner's month. `details` are the lists that the page shows by clicking, where they are read.
    `accrual` is None where it is not read, or nothing is compared. `prepared` are the months that
    wait for approval. `open_when_signed` says, by month and number of a copy that is shown,
    which breaks were open then, and why it was signed all the same. `fee_reasons` says of each kind
    of accepted fees why the mapping accepts it, as far as it says so. `told` says which statement
    tells of a break; it is None where statements are not read, as for a page that is signed.
    """

    version: int
    problem: str
    rules: dict[str, Row]
    tables: dict[str, list[Row]]
    scans: list[str]
    breaks: dict[str, Row]
    not_evaluated: list[Row] = field(default_factory=list)
    unread: list[Doubt] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[Doubt] = field(default_factory=list)
    amounts: pa.Table | None = None
    previous: "Figures | None" = None
    closed: "Figures | None" = None
    details: tuple[Detail, ...] = ()
    accrual: Accrual | None = None
    prepared: tuple[Prepared, ...] = ()
    open_when_signed: dict[tuple[date, int], str] = field(default_factory=dict)
    fee_reasons: dict[str, str] = field(default_factory=dict)
    told: dict[str, Told] | None = None


def read_figures(
    db: duckdb.DuckDBPyConnection,
    version: int,
    queries: Sequence[str] = QUERIES,
    previous: Figures | None = None,
) -> Figures:
    """Return the figures of open books. Raises duckdb.Error."""
    # Query `news` counts what scans changed that the previous version did not hold.
    db.execute("SET VARIABLE known_scans = $1", [previous and previous.scans])
    amounts = _read_amounts(db, previous)
    rules = {row["rule"]: row for row in _evaluate(db, "rules")}
    problem = _find_problem(rules)
    not_evaluated = read_not_evaluated(db) if rules else []
    tables = _read_tables(db, rules, WITHOUT_AMOUNTS if problem else queries)
    figures = Figures(
        version=version,
        problem=problem,
        rules=rules,
        tables=tables,
        scans=_scans(db),
        breaks={row["break_id"]: row for row in tables["breaks"]},
        not_evaluated=not_evaluated,
        amounts=amounts,
        previous=previous,
    )
    if problem:
        # Nothing is compared, so no part of it is in doubt.
        return figures
    unread = read_unread(db)
    # Own books say nothing about whether billing equals usage.
    not_checked = [row for row in not_evaluated if row["is_needed"] and row["own_source"] is None]
    return replace(
        figures,
        tables=tables | {"not_checked": not_checked},
        unread=unread,
        doubts=doubts_of(not_evaluated, unread),
        notes=notes_of(not_evaluated),
    )


def _read_tables(
    db: duckdb.DuckDBPyConnection, rules: dict[str, Row], queries: Sequence[str]
) -> dict[str, list[Row]]:
    """Return the rows of each query; none of those that are not asked for."""
    tables: dict[str, list[Row]] = {name: [] for name in (*QUERIES, "not_checked")}
    hold_conclusions(db)
    with suppress(duckdb.CatalogException):  # nothing is evaluated
        create_break_order(db)
    has_own_books = any(row["own_source"] for row in rules.values())
    for name in in_order(queries):
        if has_own_books or name not in OF_OWN_BOOKS:
            tables[name] = _evaluate(db, name)
    return tables


def _read_amounts(db: duckdb.DuckDBPyConnection, previous: Figures | None) -> pa.Table | None:
    """Create tables of the amounts of each partner's month, now and earlier; return those of now.

    None where nothing is compared.
    """
    earlier = previous.amounts if previous else None
    db.execute("SET VARIABLE has_earlier = $1", [earlier is not None])
    with suppress(duckdb.CatalogException):
        db.execute(f"CREATE TEMP TABLE month_amounts AS {MONTH_AMOUNTS}")
        db.execute("CREATE TEMP TABLE earlier_amounts AS FROM month_amounts LIMIT 0")
        if earlier is not None:
            rows = db.from_arrow(earlier)
            rows.query("rows", "CREATE OR REPLACE TEMP TABLE earlier_amounts AS FROM rows")
        return db.execute("FROM month_amounts").to_arrow_table()
    return None


def _scans(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the scans that the version holds; none where the books alone are open."""
    with suppress(duckdb.CatalogException):
        return [row["scan_id"] for row in fetch_rows(db, SCANS)]
    return []


@dataclass(frozen=True)
class Query:
    """A file of `sql/`, and the other queries from whose tables it reads."""

    text: str
    needs: tuple[str, ...]


@cache
def read_query(name: str) -> Query:
    """Return a query."""
    text = files("pipelines.finance.reports").joinpath(f"sql/{name}.sql").read_text("utf-8")
    needs = read_notes(text).get("needs", "")
    return Query(text, tuple(needs.split()))


def in_order(queries: Sequence[str]) -> list[str]:
    """Return queries and all that they need, each after those from which it reads."""
    needs: dict[str, tuple[str, ...]] = {}
    left = list(queries)
    while left:
        name = left.pop()
        if name not in needs:
            needs[name] = read_query(name).needs
            left.extend(needs[name])
    return list(TopologicalSorter(needs).static_order())


def _find_problem(rules: dict[str, Row]) -> str:
    """Return why usage was not compared with billing, and what to do; empty if it was.

    The summary needs all rules and tables without which no figure is right.
    """
    if not rules:
        return "No books were made of this version. Run `partner-sync reconcile`."
    reason = (rules["summary"]["reason"] or "").rstrip(".")
    if not reason or "partner-sync" in reason:
        return reason and f"{reason}."
    remedy = "Report it as a defect of partner-sync." if "failed" in reason else REMEDY
    return f"{reason}. {remedy}"


def _evaluate(db: duckdb.DuckDBPyConnection, name: str) -> list[Row]:
    """Return the rows of a query, which stay as a table; none if it reads a missing one."""
    query = read_query(name).text
    # A table of reconciliation that could not be evaluated may not even be empty.
    with suppress(duckdb.CatalogException):
        db.execute(f"CREATE TEMP TABLE {name} AS {query}")
        return fetch_rows(db, f"FROM {name}")
    return []
