"""Evaluates every rule and table of reconciliation in books that are being made.

Each is one file of `sql/`: comments that say what it asks and what it needs, and a query. One that
lacks a role or fails leaves an empty table; `reconciliation.rules` says why. If none can be
evaluated, there are no tables: empty ones would look like "no breaks".
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.core import stop
from pipelines.finance.currencies import CODES, minor_unit, read_code
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.closed_rows import create_month_rows
from pipelines.finance.reconcile.statements import (
    MEMORY,
    RULES,
    STATEMENTS,
    Statement,
    read_statement,
)
from pipelines.finance.reconcile.views import (
    CREATE_RESULT,
    create_finance_views,
    create_row_views,
)
from pipelines.metadata.tables import Close
from pipelines.warehouse.memory_limit import is_memory_refused, readable_error

BY_MONTH: Final = (
    "usage.partner", "usage.period", "usage.currency",
    "billing.partner", "billing.period", "billing.currency",
)  # fmt: skip
# Roles without which nobody can tell with which rows a row belongs.
BY_KEY: Final = ["id", "line_usage", "lines"]
BY_TIME: Final = ["partner", "period", "currency"]
# What the statements read besides rows are variables.
BEGIN: Final = """
CREATE TABLE reconciliation.rules (
    rule VARCHAR, question VARCHAR, evaluated BOOLEAN, reason VARCHAR, remedy VARCHAR,
    rests_on VARCHAR, is_needed BOOLEAN
);
CREATE TABLE reconciliation.basis AS
SELECT
    -- Of the newest load: a clock that was ahead may have dated an earlier one later.
    coalesce(max_by(loads.ended_at, loads.valid_time), 'epoch') AS as_of,
    getvariable('match_by')::VARCHAR AS match_by, getvariable('time_zone')::VARCHAR AS time_zone,
    getvariable('grace_days')::INTEGER AS grace_days
FROM meta.loads AS loads
WHERE loads.stream IN ('partners', 'usage', 'billing');
-- How the newest scan of each list ended. Of a connection that reads one of the lists that are
-- compared, all of them are there, also those that were never read.
CREATE TABLE reconciliation.lists AS
WITH expected AS (
    SELECT DISTINCT loads.connection, unnest(['partners', 'usage', 'billing']) AS stream
    FROM meta.loads AS loads
    WHERE loads.stream IN ('partners', 'usage', 'billing')
    UNION
    SELECT loads.connection, loads.stream
    FROM meta.loads AS loads
)
SELECT
    expected.connection, expected.stream,
    expected.stream IN ('partners', 'usage', 'billing') AS is_compared,
    max_by(loads.complete, loads.valid_time) AS complete,
    max_by(loads.rows, loads.valid_time) AS rows,
    max_by(loads.ended_at, loads.valid_time) AS ended_at,
    max_by(loads.ended_at, loads.valid_time) FILTER (loads.complete) AS complete_at,
    max_by(loads.sentence, loads.valid_time) AS sentence,
    (SELECT count(*) FROM quarantine.records AS records
        WHERE (records.connection, records.stream) = (expected.connection, expected.stream)
    ) AS in_quarantine
FROM expected
LEFT JOIN meta.loads AS loads USING (connection, stream)
GROUP BY expected.connection, expected.stream;
SET VARIABLE as_of = (SELECT basis.as_of FROM reconciliation.basis AS basis);
"""
# Their amounts get the digits behind the point that those of now and of earlier books have.
WIDEN: Final = "ALTER TABLE temp.memory_{table} ALTER COLUMN {column} SET DATA TYPE {type}"
# Besides the views, what the statements read and write.
CREATE_TABLES: Final = """
CREATE TABLE reconciliation.break_rows (
    rule VARCHAR, break_id VARCHAR, connection VARCHAR, subject VARCHAR, partner VARCHAR,
    month DATE, currency VARCHAR, cause VARCHAR, side VARCHAR, id VARCHAR, quantity {quantity},
    amount {amount}, _scan_id VARCHAR, _page INTEGER, _row INTEGER
);
CREATE TABLE reconciliation.currencies (currency VARCHAR, minor_unit DECIMAL(5, 4));
INSERT INTO reconciliation.currencies VALUES {currencies};
CREATE OR REPLACE TEMP TABLE tolerances (
    currency VARCHAR, partner VARCHAR, line_minor BIGINT, line_share DECIMAL(10, 8),
    month_minor BIGINT
);
CREATE TABLE reconciliation.decisions (
    number BIGINT, break_id VARCHAR, kind VARCHAR, person VARCHAR, decided_at TIMESTAMPTZ,
    owner VARCHAR, reason VARCHAR, difference {amount}, rows BIGINT
);
"""
# Its currency is a part of what identifies a break, so that two are never added.
INSERT_BREAKS: Final = """
INSERT INTO reconciliation.break_rows
SELECT
    '{rule}',
    'B' || left(
        sha256(concat_ws('|', '{rule}', found.connection, found.currency, found.subject)), 12
    ),
    found.connection, found.subject, found.partner, found.month, found.currency, found.cause,
    found.side, found.id, found.quantity, found.amount, found._scan_id, found._page, found._row
FROM ({query}) AS found
"""
INSERT_TOLERANCE: Final = "INSERT INTO tolerances VALUES ($1, $2, $3, $4, $5)"
CREATE_FIELDS: Final = "CREATE OR REPLACE TEMP TABLE role_fields (role VARCHAR, field VARCHAR)"
INSERT_FIELD: Final = "INSERT INTO role_fields VALUES ($1, $2)"
# What a disk refuses, now: the books before stay, instead of new ones with less in them.
PASSING: Final = (duckdb.IOException, duckdb.FatalException, duckdb.InterruptException)
INSERT_RULE: Final = "INSERT INTO reconciliation.rules VALUES ($1, $2, $3, $4, $5, $6, $7)"


@dataclass(frozen=True)
class Inputs:
    """What reconciliation rests on besides rows. Without `mapping`, `problem` says why.

    `mapping_text` is its file, None where that cannot be read.
    `digest` is one of them all but the decisions. `decisions` about breaks: number, break_id, kind,
    person, decided_at, owner, reason, and the break's difference (as text) and rows of that time.
    `memory`: what is remembered of earlier books, an Arrow table by its name; their data ended at
    `last_as_of`. `closes`: those of all months, by the folder of their copy. `erased`: digests of
    identifiers that were erased. `may_grow`: who is refused memory begins again with more.
    """

    mapping: Mapping | None = None
    mapping_text: str | None = ""
    problem: str = "Nothing is mapped."
    digest: str = ""
    decisions: Sequence[dict[str, Any]] = ()
    memory: dict[str, pa.Table] = field(default_factory=dict)
    last_as_of: datetime | None = None
    closes: dict[Path, Close] = field(default_factory=dict)
    erased: Sequence[str] = ()
    may_grow: bool = False

    @property
    def decisions_digest(self) -> str:
        """One of all decisions; empty without any. A restored database may repeat their numbers."""
        if not self.decisions:
            return ""
        text = "\n".join(map(str, self.decisions))
        return sha256(text.encode()).hexdigest()


def reconcile(db: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    """Fill the schemas `reconciliation` and `finance` of new books, whose version is attached.

    Where nothing can be evaluated, only table `rules` is there, which says why. Raises duckdb.Error
    for what may pass (`PASSING`), and for memory that is refused if there may be more; and what a
    request to stop raises.
    """
    problem = inputs.problem
    try:
        if inputs.mapping is not None:
            _Engine(db, inputs, inputs.mapping).run()
            return
    except PASSING:
        raise
    except duckdb.Error as error:
        if inputs.may_grow and is_memory_refused(error):
            raise
        problem = f"Reconciliation failed: {readable_error(error)}"
    finally:
        db.execute("SET TimeZone = 'UTC'")
    # Empty tables would look like "no breaks".
    db.execute("DROP SCHEMA finance CASCADE; DROP SCHEMA reconciliation CASCADE")
    db.execute("CREATE SCHEMA reconciliation; CREATE SCHEMA finance")
    _begin(db, inputs, dict.fromkeys(("match_by", "time_zone", "grace_days")))
    for name in STATEMENTS:
        _insert_rule(db, read_statement(name), problem)


def _begin(db: duckdb.DuckDBPyConnection, inputs: Inputs, terms: dict[str, Any]) -> None:
    """Set terms as variables; create the tables that are there whatever can be evaluated."""
    for name, value in {**terms, "last_as_of": inputs.last_as_of}.items():
        db.execute(f"SET VARIABLE {name} = $1", [value])
    db.execute(BEGIN)


def replace_decisions(db: duckdb.DuckDBPyConnection, decisions: Sequence[dict[str, Any]]) -> None:
    """Replace the decisions in books. What they say of breaks is in views."""
    try:
        db.execute("DELETE FROM reconciliation.decisions")
    except duckdb.CatalogException:
        return  # nothing was evaluated, so there is no break
    if decisions:
        rows = db.from_arrow(pa.Table.from_pylist(list(decisions)))
        rows.query("added", "INSERT INTO reconciliation.decisions BY NAME FROM added")


def _insert_rule(db: duckdb.DuckDBPyConnection, statement: Statement, reason: str) -> None:
    if statement.question:
        about = (
            statement.name,
            statement.question,
            not reason,
            reason or None,
            statement.remedy,
            statement.rests_on or None,
            statement.is_needed(reason),
        )
        db.execute(INSERT_RULE, about)


def _tolerances(mapping: Mapping) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `tolerances`: those of currencies, then those of partners."""
    for code, terms in mapping.tolerance.currency.items():
        yield read_code(code), None, terms.line_minor, terms.line_share, terms.month_minor
    for partner, terms in mapping.tolerance.partner.items():
        yield None, partner, terms.line_minor, terms.line_share, terms.month_minor


class _Engine:
    """One evaluation with a mapping. `failed` says why a statement has no result."""

    def __init__(self, db: duckdb.DuckDBPyConnection, inputs: Inputs, mapping: Mapping) -> None:
        self.db = db
        self.inputs = inputs
        self.mapping = mapping
        self.failed: dict[str, str] = {}
        # Days of times, such as that of a record, are those of the mapping's time zone.
        db.execute(f"SET TimeZone = '{mapping.time_zone}'")
        self.sides = create_row_views(db, mapping)

    def run(self) -> None:
        """Evaluate the rules, then the tables that count and show their breaks."""
        _begin(self.db, self.inputs, self._terms())
        self._create_tables()
        for name in STATEMENTS:
            self._evaluate(read_statement(name))
        create_finance_views(self.db, self.failed)

    def _terms(self) -> dict[str, Any]:
        """Return what the statements read besides rows."""
        mapping = self.mapping
        roles = self.sides.columns.keys()
        by_usage = self.sides.by_usage
        if not by_usage:
            reason = self.sides.missing(BY_MONTH)
            if reason:
                self.failed["match"] = reason
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
            "has_quantity": roles >= {"usage.quantity", "billing.line_quantity"},
            "has_amount": roles >= {"usage.amount", billed},
        }

    def _create_tables(self) -> None:
        """Create what the statements read and write besides the views."""
        for name, remembered in self.inputs.memory.items():
            self.db.from_arrow(remembered).query(
                "rows", f"CREATE OR REPLACE TEMP TABLE memory_{name} AS FROM rows"
            )
        reason = create_month_rows(self.db, self.inputs.closes)
        if reason:
            self.failed["month_rows"] = reason
        month_rows = self.db.table("month_rows")
        types = dict(zip(month_rows.columns, month_rows.types, strict=True))
        for table, amounts in MEMORY.items():
            for amount in amounts:
                self.db.execute(WIDEN.format(table=table, column=amount, type=types["amount"]))
        units = ", ".join(f"('{code}', {minor_unit(code)})" for code in sorted(CODES))
        self.db.execute(CREATE_TABLES.format(**types, currencies=units))
        for terms in _tolerances(self.mapping):
            self.db.execute(INSERT_TOLERANCE, terms)
        quarantined = self.db.from_arrow(self.sides.quarantined())
        quarantined.query("added", "CREATE OR REPLACE TEMP TABLE quarantined AS FROM added")
        self.db.execute(CREATE_FIELDS)
        self.db.executemany(INSERT_FIELD, list(self._fields().items()))
        replace_decisions(self.db, self.inputs.decisions)

    def _fields(self) -> dict[str, str]:
        """Return the field of each role, and of the list that holds the lines."""
        fields = self.mapping.fields()
        of_lines = [path for role, path in fields.items() if ".line_" in role]
        fields["billing.lines"] = of_lines[0].partition("[]")[0] if of_lines else ""
        return fields

    def _evaluate(self, statement: Statement) -> None:
        """Create the table of a statement, an empty one if it fails; note why in `rules`."""
        stop.raise_if_requested()
        name = statement.name
        sql = self._sql(statement)
        reason = self._why_not(statement)
        if not reason:
            try:
                self.db.execute(sql)
            except PASSING:
                raise
            except duckdb.Error as error:
                if self.inputs.may_grow and is_memory_refused(error):
                    raise
                reason = f"The query of {name} failed: {readable_error(error)}"
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
