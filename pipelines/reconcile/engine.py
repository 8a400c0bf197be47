"""Evaluates every rule and table of reconciliation in a version that is being built.

Each is one file of `sql/`: comments that say what it asks and which roles it needs, and a query.
One that lacks a role or fails leaves an empty table; `reconciliation.rules` says why.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.config.mapping import Mapping
from pipelines.core.currencies import DIGITS, minor_unit
from pipelines.core.text import printable, quote_identifier
from pipelines.metadata.tables import Close
from pipelines.reconcile.finance import create_finance_views
from pipelines.reconcile.months import create_month_rows
from pipelines.reconcile.normalize import BY_USAGE, create_views
from pipelines.reconcile.roles import Roles, find_roles
from pipelines.reconcile.statements import (
    DERIVED,
    MATCH,
    REMEMBERED,
    RULES,
    STORED,
    TABLES,
    TEMPORARY,
    UNLISTED,
    Statement,
    read_statement,
)

BY_MONTH: Final = tuple(
    f"{side}.{role}" for side in ("usage", "billing") for role in ("partner", "period", "currency")
)
CREATE: Final = """
CREATE SCHEMA IF NOT EXISTS reconciliation;
CREATE OR REPLACE TABLE reconciliation.rules (
    rule VARCHAR, question VARCHAR, evaluated BOOLEAN, reason VARCHAR, remedy VARCHAR
);
CREATE OR REPLACE TABLE reconciliation.basis (
    as_of TIMESTAMPTZ, match_by VARCHAR, time_zone VARCHAR, grace_days INTEGER, digest VARCHAR
);
"""
CREATE_BREAKS: Final = """
CREATE TABLE IF NOT EXISTS reconciliation.breaks (
    break_id VARCHAR, rule VARCHAR, connection VARCHAR, subject VARCHAR, partner VARCHAR,
    month DATE, currency VARCHAR, cause VARCHAR, used_amount {0},
    billed_amount {0}, difference {0}, rows BIGINT,
    first_seen TIMESTAMPTZ, last_seen TIMESTAMPTZ, gone_at TIMESTAMPTZ, returned_at TIMESTAMPTZ
);
"""
WIDEN: Final = "ALTER TABLE reconciliation.breaks ALTER COLUMN {} SET DATA TYPE {}"
CREATE_TEMPORARY: Final = """
CREATE OR REPLACE TABLE reconciliation.currencies (currency VARCHAR, minor_unit DECIMAL(5, 4));
CREATE OR REPLACE TEMP TABLE unproven (rule VARCHAR, connection VARCHAR, reason VARCHAR);
CREATE OR REPLACE TEMP TABLE break_decisions (
    number BIGINT, break_id VARCHAR, kind VARCHAR, person VARCHAR, decided_at TIMESTAMPTZ,
    owner VARCHAR, reason VARCHAR, difference {}, rows BIGINT
);
CREATE OR REPLACE TEMP TABLE known_partners AS
SELECT partners.connection, partners.partner, min(partners.name) AS name
FROM reconciliation.partners AS partners
WHERE partners.partner IS NOT NULL
GROUP BY partners.connection, partners.partner;
CREATE OR REPLACE TEMP TABLE strangers AS
SELECT found.connection, found.partner
FROM (
    SELECT used.connection, used.partner FROM reconciliation.used AS used
    UNION
    SELECT bills.connection, bills.partner FROM reconciliation.bills AS bills
) AS found
ANTI JOIN known_partners AS known
    ON known.connection = found.connection AND known.partner = found.partner
WHERE getvariable('has_partners') AND found.partner IS NOT NULL;
"""
# Rows of keys that are not plainly balanced, and their pairs.
ODD_ROWS: Final = """
CREATE OR REPLACE TEMP TABLE odd_{0} AS
SELECT {0}.* FROM reconciliation.{0} AS {0}
SEMI JOIN odd_keys ON odd_keys.key = hash({0}.connection, {0}.key)
WHERE {0}.key IS NOT NULL
"""
CREATE_UNBALANCED: Final = """
CREATE OR REPLACE TEMP TABLE unbalanced AS
SELECT matches.*
FROM reconciliation.unmatched AS matches
WHERE matches.status NOT IN ('balanced', 'within tolerance', 'tentative', 'not evaluated')
"""
CREATE_TABLE: Final = "CREATE OR REPLACE TABLE reconciliation.{} AS"
FOUND: Final = """
SELECT
    '{0}' AS rule,
    'B' || left(sha256(concat_ws('|', '{0}', found.connection, found.subject)), 12) AS break_id,
    found.connection, found.subject, found.partner, found.month, found.currency, found.cause,
    found.side, found.id, found.quantity, found.amount, found._scan_id, found._page, found._row
FROM found_{0} AS found
"""
INSERT_BASIS: Final = """
INSERT INTO reconciliation.basis
VALUES (getvariable('as_of'), getvariable('match_by'), $time_zone, $grace_days, $digest)
"""
# What an earlier version has, without what it remembers.
STALE: Final = f"""
SELECT 'VIEW', views.schema_name, views.view_name FROM duckdb_views() AS views
WHERE views.database_name = current_database()
    AND views.schema_name IN ('reconciliation', 'finance')
UNION ALL
SELECT 'TABLE', tables.schema_name, tables.table_name FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND tables.schema_name = 'reconciliation'
    AND tables.table_name NOT IN {REMEMBERED}
"""
INSERT_RULE: Final = "INSERT INTO reconciliation.rules VALUES ($1, $2, $3, $4, $5)"
AS_OF: Final = """
SELECT max(loads.ended_at) FROM meta.loads AS loads
WHERE loads.stream IN ('partners', 'usage', 'billing')
"""
# What is absent from a list that is not proven complete may only not have been seen.
INSERT_UNPROVEN: Final = """
INSERT INTO unproven
SELECT $rule, loads.connection, concat($stream, CASE
    WHEN count(loads.complete) FILTER (loads.stream = $stream) = 0 THEN ' is not loaded'
    ELSE ' is not proven complete' END)
FROM meta.loads AS loads
GROUP BY loads.connection
HAVING max_by(loads.complete, loads.valid_time) FILTER (loads.stream = $stream) IS NOT TRUE
"""


@dataclass(frozen=True)
class Inputs:
    """What reconciliation rests on besides rows. Without `mapping`, `problem` says why.

    `digest` is one of them all. `decisions` about breaks: number, break_id, kind, person,
    decided_at, owner, reason, and the break's difference (as text) and rows of that time.
    `earlier`: what another version remembers (an Arrow table by its name), where this one has no
    base. `closes`: those of all months, by the folder of their copy.
    """

    mapping: Mapping | None = None
    problem: str = "Nothing is mapped."
    digest: str = ""
    decisions: Sequence[dict[str, Any]] = ()
    earlier: dict[str, Any] = field(default_factory=dict)
    closes: dict[Path, Close] = field(default_factory=dict)


def reconcile(db: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    """Replace schema `reconciliation`, but for what its breaks remember of earlier versions.

    Raises nothing for what cannot be evaluated, so that the rows are published all the same. Where
    nothing can be, only table `rules` is there, which says why.
    """
    problem = inputs.problem
    if inputs.mapping is not None:
        try:
            _Engine(db, inputs, inputs.mapping, find_roles(db, inputs.mapping)).run()
        except duckdb.Error as error:
            problem = f"Reconciliation failed: {printable(error)}"
        else:
            return
    for kind, schema, name in db.execute(STALE).fetchall():
        db.execute(f"DROP {kind} {schema}.{quote_identifier(name)}")
    db.execute(CREATE)
    db.execute(INSERT_BASIS, {"digest": inputs.digest, "time_zone": None, "grace_days": None})
    for name in ("matches", *RULES, *TABLES):
        _insert_rule(db, read_statement(name), problem)


def _insert_rule(db: duckdb.DuckDBPyConnection, statement: Statement, reason: str) -> None:
    about = (statement.name, statement.question, not reason, reason or None, statement.remedy)
    if statement.name not in UNLISTED:
        db.execute(INSERT_RULE, about)


@dataclass
class _Engine:
    """One evaluation with a mapping."""

    db: duckdb.DuckDBPyConnection
    inputs: Inputs
    mapping: Mapping
    roles: Roles
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)  # relation -> statement, why

    def run(self) -> None:
        """Evaluate the rules, then the tables that count and show their breaks."""
        self._prepare()
        self._match()
        for rule in RULES:
            self._create(rule)
            for stream in read_statement(rule).absent:
                self.db.execute(INSERT_UNPROVEN, {"rule": rule, "stream": stream})
        found = " UNION ALL BY NAME ".join(FOUND.format(rule) for rule in RULES)
        self.db.execute(f"{CREATE_TABLE.format('break_rows')} {found}")
        for name in TABLES:
            self._create(name)
        tables = [name for name in self.failed if name.startswith("reconciliation.")]
        create_finance_views(self.db, tables)

    def _match(self) -> None:
        """Compare what is not plainly balanced; view `matches` shows all pairs to analysts."""
        self._create("odd_keys")
        for name in ("used", "billed"):
            self.db.execute(ODD_ROWS.format(name))
        self._create("matches")
        self.db.execute(CREATE_UNBALANCED)
        query = read_statement("matches").query.replace("odd_", "reconciliation.")
        query = re.sub(r"getvariable\('(\w+)'\)", self._literal, query)
        self.db.execute(f"CREATE OR REPLACE VIEW reconciliation.matches AS {query}")

    def _literal(self, variable: re.Match[str]) -> str:
        """Return the value of a variable for a view, which outlives this connection."""
        sql = f"SELECT typeof(value), value::VARCHAR FROM (SELECT {variable[0]} AS value)"
        of_type, text = self.db.execute(sql).fetchall()[0]
        return f"CAST('{text}' AS {of_type})"

    def _prepare(self) -> None:
        """Create the views, and what the statements read besides them."""
        mapping = self.mapping
        by_usage, has = not self.roles.missing(BY_USAGE), self.roles.columns.keys()
        billed = "billing.line_amount" if by_usage else "billing.amount"
        as_of = self.db.execute(AS_OF).fetchall()[0][0]
        terms = {
            "as_of": as_of or datetime.fromtimestamp(0, UTC),
            "match_by": "usage" if by_usage else "month",
            "grace_days": mapping.grace_days,
            "line_minor": mapping.tolerance.line_minor,
            "line_share": mapping.tolerance.line_percent / 100,
            "month_minor": mapping.tolerance.month_minor,
            "has_partners": "partners.id" in has,
            "has_quantity": {"usage.quantity", "billing.line_quantity"} <= has,
            "has_amount": {"usage.amount", billed} <= has,
        }
        for name, value in terms.items():
            self.db.execute(f"SET VARIABLE {name} = $1", [value])
        self.db.execute(CREATE)
        for table, rows in self.inputs.earlier.items():
            self._run_on_rows(CREATE_TABLE.format(table), rows)
        self.db.execute(CREATE_BREAKS.format(self.roles.decimal("amount")))
        basis = {"time_zone": mapping.time_zone, "grace_days": mapping.grace_days}
        self.db.execute(INSERT_BASIS, {**basis, "digest": self.inputs.digest})
        for column in ("used_amount", "billed_amount", "difference"):
            self.db.execute(WIDEN.format(column, self.roles.decimal("amount")))
        create_views(self.db, mapping, self.roles)
        self.db.execute(CREATE_TEMPORARY.format(self.roles.decimal("amount")))
        units = [{"currency": code, "minor_unit": minor_unit(code)} for code in DIGITS]
        self._insert("reconciliation.currencies", units)
        self._insert("break_decisions", self.inputs.decisions)
        if reason := create_month_rows(self.db, self.inputs.closes):
            self.failed["month_rows"] = ("changes", reason)

    def _insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            self._run_on_rows(f"INSERT INTO {table} BY NAME", pa.Table.from_pylist(list(rows)))

    def _run_on_rows(self, statement: str, rows: Any) -> None:
        self.db.register("added_rows", rows)
        self.db.execute(f"{statement} FROM added_rows")
        self.db.unregister("added_rows")

    def _create(self, name: str) -> None:
        """Create the relation of a statement, an empty one if it fails; note why in `rules`."""
        statement = read_statement(name)
        kind, relation = "TABLE", STORED.get(name, f"reconciliation.{name}")
        if name in RULES or name in TEMPORARY:
            kind, relation = "TEMP TABLE", TEMPORARY.get(name, f"found_{name}")
        create = f"CREATE OR REPLACE {kind} {relation} AS"
        reason = self._missing(statement)
        if not reason:
            try:
                self.db.execute(f"{create} {statement.query}")
            except duckdb.Error as error:
                reason = f"Its query failed: {printable(error)}"
        if reason:
            self.failed |= dict.fromkeys((relation, *DERIVED.get(name, ())), (name, reason))
            if name not in REMEMBERED:
                with suppress(duckdb.Error):
                    self.db.execute(f"{create} SELECT * FROM ({statement.query}) LIMIT 0")
        _insert_rule(self.db, statement, reason)

    def _missing(self, statement: Statement) -> str:
        """Return why a statement cannot be evaluated; empty if it can."""
        for relation, (name, reason) in self.failed.items():
            if re.search(rf"\b{re.escape(relation)}\b", statement.query):
                return reason if name in UNLISTED else f"{name} is not evaluated: {reason}"
        match = () if not self.roles.missing(BY_USAGE) else BY_MONTH
        needs = [match if each == MATCH else (each,) for each in statement.needs]
        return self.roles.missing(role for roles in needs for role in roles)
