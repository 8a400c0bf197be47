"""Evaluates every rule and table of reconciliation in books that are being made.

Each is one file of `sql/`: comments that say what it asks and what it needs, and a query. One that
lacks a role or fails leaves an empty table; `reconciliation.rules` says why. If none can be
evaluated, there are no tables: empty ones would look like "no breaks".
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import duckdb

from pipelines.core import stop
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile import basis
from pipelines.finance.reconcile.basis import Inputs
from pipelines.finance.reconcile.closed_rows import create_month_rows
from pipelines.finance.reconcile.own.all_sources import create_own_tables, read_third_sides
from pipelines.finance.reconcile.own.third_side import ThirdSide
from pipelines.finance.reconcile.statements import RULES, STATEMENTS, Statement, read_statement
from pipelines.finance.reconcile.views import (
    CREATE_RESULT,
    PASSING,
    create_finance_views,
    create_rows_to_compare,
)
from pipelines.warehouse.duckdb_file import Row, column_types, insert_row
from pipelines.warehouse.memory_limit import is_memory_refused, readable_error

BY_MONTH: Final = (
    "usage.partner", "usage.period", "usage.currency",
    "billing.partner", "billing.period", "billing.currency",
)  # fmt: skip
CURRENCIES: Final = ("usage.currency", "billing.currency")
# Roles without which nobody can tell with which rows a row belongs.
BY_KEY: Final = ["id", "line_usage", "lines"]
BY_TIME: Final = ["partner", "period", "currency"]
# What a line bills, if the line does not say it: that of the usage that it names.
ITEMS: Final = (
    "usage.plan", "usage.metric", "usage.unit", "usage.region", "usage.organization",
)  # fmt: skip
# What says how much of a bill is paid, beside its status.
PAYMENTS: Final = ("billing.open", "billing.paid")
# Its currency is a part of what identifies a break, so that two are never added.
INSERT_BREAKS: Final = """
INSERT INTO reconciliation.break_rows
SELECT
    '{rule}',
    'B' || left(
        sha256(concat_ws('|', '{rule}', found.connection, found.currency, found.subject)), 12
    ),
    found.connection, found.subject, found.partner, found.month, found.currency, found.cause,
    found.side, found.id, found.quantity, found.amount, found._scan_id, found._page, found._row,
    NULL, found.first_bill
FROM (
    ({query})
    UNION ALL BY NAME
    SELECT NULL::VARCHAR AS first_bill WHERE false  -- most rules have none
) AS found
"""
RULES_TABLE: Final = "reconciliation.rules"


def reconcile(db: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    """Fill the schemas `reconciliation` and `finance` of new books, whose version is attached.

    Where nothing can be evaluated, only table `rules` is there, which says why. Raises duckdb.Error
    for what may pass (`PASSING`), and for memory that is refused if there may be more; and what a
    request to stop raises.
    """
    problem = inputs.problem
    mapping = inputs.mapping
    try:
        if mapping is not None:
            why = _why_failed(inputs, lambda: _Engine(db, inputs, mapping).run())
            if not why:
                return
            problem = f"Reconciliation failed: {why}"
    finally:
        db.execute("SET TimeZone = 'UTC'")
    # Empty tables would look like "no breaks".
    db.execute("DROP SCHEMA finance CASCADE; DROP SCHEMA reconciliation CASCADE")
    db.execute("CREATE SCHEMA reconciliation; CREATE SCHEMA finance")
    basis.begin(db, inputs, dict.fromkeys(("match_by", "time_zone", "grace_days")))
    for name in STATEMENTS:
        _insert_rule(db, read_statement(name), problem)


def _why_failed(inputs: Inputs, run: Callable[[], object]) -> str:
    """Run queries; return why they failed, empty if they did not.

    Raises duckdb.Error for what may pass, and for memory that is refused if there may be more.
    """
    try:
        run()
    except PASSING:
        raise
    except duckdb.Error as error:
        if inputs.may_grow and is_memory_refused(error):
            raise
        return readable_error(error)
    return ""


def _insert_rule(db: duckdb.DuckDBPyConnection, statement: Statement, reason: str) -> None:
    """Note in `rules` whether a statement with a question was evaluated, or why not."""
    if statement.question:
        rule: Row = {
            "rule": statement.name,
            "question": statement.question,
            "evaluated": not reason,
            "reason": reason or None,
            "remedy": statement.remedy,
            "rests_on": statement.rests_on or None,
            "is_needed": statement.is_needed(reason),
        }
        insert_row(db, RULES_TABLE, rule)


class _Engine:
    """One evaluation with a mapping. `failed` says why a statement has no result."""

    def __init__(self, db: duckdb.DuckDBPyConnection, inputs: Inputs, mapping: Mapping) -> None:
        self.db = db
        self.inputs = inputs
        self.mapping = mapping
        self.failed: dict[str, str] = {}
        # Days of times, such as that of a record, are those of the mapping's time zone.
        db.execute(f"SET TimeZone = '{mapping.time_zone}'")
        self.sides = create_rows_to_compare(db, mapping, inputs.connections)

    def run(self) -> None:
        """Evaluate the rules, then the tables that count and show their breaks."""
        self._note_unmapped()
        basis.begin(self.db, self.inputs, self._terms())
        self.sides.note_readings()
        self._read_own_books()
        self._create_tables()
        for name in STATEMENTS:
            if name == "break_facts":
                self._compare_own_books()
            self._evaluate(read_statement(name))
        create_finance_views(self.db, self.failed)

    def _note_unmapped(self) -> None:
        """Note in `failed` why nothing can be matched, or nobody can tell what is paid."""
        roles = self.sides.columns.keys()
        needed = list(BY_MONTH)
        if self.sides.by_usage:
            # A currency that one side has is not that of the other: whole months would differ.
            needed = [] if roles.isdisjoint(CURRENCIES) else list(CURRENCIES)
        reason = self.sides.missing(needed)
        if reason:
            self.failed["match"] = reason
        says_paid = "billing.status" in roles and self.mapping.billing.paid_statuses
        if roles.isdisjoint(PAYMENTS) and not says_paid:
            self.failed["payments"] = "; ".join(f"{role} is not mapped" for role in PAYMENTS)

    def _terms(self) -> dict[str, Any]:
        """Return what the statements read besides rows."""
        mapping = self.mapping
        roles = self.sides.columns.keys()
        by_usage = self.sides.by_usage
        billed = "billing.line_amount" if by_usage else "billing.amount"
        return {
            "match_by": "usage" if by_usage else "month",
            "key_roles": BY_KEY if by_usage else BY_TIME,
            "time_zone": mapping.time_zone.key,
            "grace_days": mapping.grace_days,
            "line_minor": mapping.tolerance.line_minor,
            "line_share": mapping.tolerance.line_percent / 100,
            "month_minor": mapping.tolerance.month_minor,
            "erased": list(self.inputs.erased),
            "has_partners": "partners.id" in roles,
            "names_partner": roles >= {"usage.partner", "billing.partner"},
            "has_quantity": roles >= {"usage.quantity", "billing.line_quantity"},
            "has_open": "billing.open" in roles,
            "has_items": by_usage and not roles.isdisjoint(ITEMS),
            "has_amount": roles >= {"usage.amount", billed},
        }

    def _create_tables(self) -> None:
        """Create what the statements read and write besides the views."""
        basis.remember(self.db, self.inputs)
        connections = self.inputs.connections
        own = [third_side.no_row for third_side in self.third_sides]
        reason = create_month_rows(
            self.db, self.inputs.closes, connections, self.inputs.mapping, own
        )
        if reason:
            self.failed["month_rows"] = reason
        types = column_types(self.db.table("month_rows"))
        basis.create_tables(self.db, self.inputs, self.mapping, types)
        basis.create_whole_numbers(self.db, types)
        quarantined = self.db.from_arrow(self.sides.quarantined())
        quarantined.query("added", "CREATE OR REPLACE TEMP TABLE quarantined AS FROM added")

    def _read_own_books(self) -> None:
        """Read the sources of own books to temporary tables, if the mapping has any."""
        self.third_sides: list[ThirdSide] = []
        if self.mapping.own and self.inputs.own is not None:
            self.third_sides = read_third_sides(
                self.db, self.mapping, self.sides, self.inputs.own, self.inputs.connections
            )

    def _compare_own_books(self) -> None:
        """Add the breaks of own books; note in `rules` why a source has none, or is uncertain."""
        if not self.third_sides or self.inputs.own is None:
            return
        create_own_tables(self.db)
        for third_side in self.third_sides:
            stop.raise_if_requested()
            why = _why_failed(self.inputs, third_side.find_breaks)
            if why:
                third_side.problem = f"Its query failed: {why}"
            third_side.note()
            insert_row(self.db, RULES_TABLE, third_side.as_rule())

    def _evaluate(self, statement: Statement) -> None:
        """Create the table of a statement, an empty one if it fails; note why in `rules`."""
        stop.raise_if_requested()
        name = statement.name
        sql = self._sql(statement)
        reason = self._why_not(statement)
        if not reason:
            why = _why_failed(self.inputs, partial(self.db.execute, sql))
            if why:
                reason = f"The query of {name} failed: {why}"
        if reason:
            self.failed[name] = reason
            if name not in RULES:
                with suppress(duckdb.Error):
                    self.db.execute(f"{sql} LIMIT 0")
        _insert_rule(self.db, statement, reason)

    def _why_not(self, statement: Statement) -> str:
        """Return why a statement cannot be evaluated: what it needs failed, or has no field."""
        needs = statement.needs.split()
        for need in needs:
            if need in self.failed:
                return self.failed[need]
        return self.sides.missing(need for need in needs if "." in need)

    @staticmethod
    def _sql(statement: Statement) -> str:
        """Return what creates the table of a statement, or adds the breaks of a rule."""
        if statement.name in RULES:
            return INSERT_BREAKS.format(rule=statement.name, query=statement.query)
        schema = "" if "TEMP" in statement.kind else "reconciliation."
        return CREATE_RESULT.format(
            kind=statement.kind, name=f"{schema}{statement.name}", query=statement.query
        )
