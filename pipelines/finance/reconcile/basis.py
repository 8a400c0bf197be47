"""What reconciliation rests on besides rows: `Inputs`, and the tables that are made of them.

Here: terms of the mapping, how lists ended, what is remembered, what people decided. Not here: the
views of rows (views), and the statements that read all this (`sql/`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from pipelines.core.text import is_one_of
from pipelines.finance.currencies import CODES, MOST_DIGITS, minor_unit, read_code
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.own.inputs import OwnInputs
from pipelines.finance.reconcile.roles import is_of_lines
from pipelines.finance.reconcile.statements import REMEMBERED
from pipelines.metadata.tables import Close
from pipelines.warehouse.duckdb_file import decimal_scale

# What the statements read besides rows are variables.
BEGIN: Final = """
CREATE TABLE reconciliation.rules (
    rule VARCHAR, question VARCHAR, evaluated BOOLEAN, reason VARCHAR, remedy VARCHAR,
    rests_on VARCHAR, is_needed BOOLEAN, own_source VARCHAR
);
CREATE TABLE reconciliation.readings (
    months VARCHAR, role VARCHAR, field VARCHAR, table_name VARCHAR, type VARCHAR, scale INTEGER,
    digits INTEGER
);
CREATE TABLE reconciliation.basis AS
SELECT
    -- Of the newest load: a clock that was ahead may have dated an earlier one later.
    coalesce(max_by(loads.ended_at, loads.valid_time), 'epoch') AS as_of,
    -- That of the books before.
    getvariable('last_as_of')::TIMESTAMPTZ AS last_as_of,
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
WHERE {is_chosen}
GROUP BY expected.connection, expected.stream;
-- Whether a month of a connection is over is judged by its own newest load.
CREATE OR REPLACE TEMP TABLE read_until AS
SELECT loads.connection, max_by(loads.ended_at, loads.valid_time)::DATE AS day
FROM meta.loads AS loads
WHERE loads.stream IN ('partners', 'usage', 'billing')
GROUP BY loads.connection;
SET VARIABLE as_of = (SELECT basis.as_of FROM reconciliation.basis AS basis);
"""
# A version of an older format does not say it: its books are made of all connections.
HAS_CONNECTIONS: Final = """
SELECT count(*) > 0
FROM duckdb_tables() AS tables
WHERE (tables.database_name, tables.schema_name, tables.table_name)
    = ('warehouse', 'meta', 'connections')
"""
# Which rows the books are of: a later version may have the same ones.
CREATE_CONNECTIONS: Final = """
CREATE TABLE reconciliation.connections (connection VARCHAR, version INTEGER)
"""
INSERT_CONNECTIONS: Final = """
INSERT INTO reconciliation.connections
SELECT connections.connection, connections.version
FROM meta.connections AS connections
WHERE {is_chosen} AND connections.version IS NOT NULL
"""
REMEMBER: Final = "CREATE OR REPLACE TEMP TABLE remembered_{table} AS FROM rows"
# Their amounts get the digits behind the point that those of now and of earlier books have.
WIDEN: Final = "ALTER TABLE temp.remembered_{table} ALTER COLUMN {column} SET DATA TYPE {type}"
CREATE_MEMORY: Final = """
CREATE OR REPLACE TEMP VIEW memory_{table} AS
FROM temp.remembered_{table} AS remembered
WHERE {is_chosen}
"""
# Besides the views, what the statements read and write.
CREATE_TABLES: Final = """
CREATE TABLE reconciliation.break_rows (
    rule VARCHAR, break_id VARCHAR, connection VARCHAR, subject VARCHAR, partner VARCHAR,
    month DATE, currency VARCHAR, cause VARCHAR, side VARCHAR, id VARCHAR, quantity {quantity},
    amount {amount}, _scan_id VARCHAR, _page INTEGER, _row INTEGER,
    file VARCHAR, first_bill VARCHAR
);
CREATE TABLE reconciliation.currencies (currency VARCHAR, minor_unit DECIMAL(5, 4));
INSERT INTO reconciliation.currencies VALUES {currencies};
CREATE OR REPLACE TEMP TABLE tolerances (
    currency VARCHAR, partner VARCHAR, line_minor BIGINT, line_share DECIMAL(10, 8),
    month_minor BIGINT
);
CREATE OR REPLACE TEMP TABLE accepted_fees (
    kind VARCHAR, has_field BOOLEAN, currency VARCHAR, up_to DECIMAL(38, 18)
);
CREATE TABLE reconciliation.accepted_materiality (currency VARCHAR, amount DECIMAL(28, 4));
CREATE TABLE reconciliation.decisions (
    number BIGINT, break_id VARCHAR, kind VARCHAR, person VARCHAR, decided_at TIMESTAMPTZ,
    owner VARCHAR, reason VARCHAR, difference {amount}, rows BIGINT, rows_digest VARCHAR,
    since TIMESTAMPTZ
);
"""
INSERT_TOLERANCE: Final = "INSERT INTO tolerances VALUES ($1, $2, $3, $4, $5)"
INSERT_MATERIALITY: Final = "INSERT INTO reconciliation.accepted_materiality VALUES ($1, $2)"
INSERT_FEE: Final = "INSERT INTO accepted_fees VALUES ($1, $2, $3, $4)"
CREATE_FIELDS: Final = "CREATE OR REPLACE TEMP TABLE role_fields (role VARCHAR, field VARCHAR)"
INSERT_FIELD: Final = "INSERT INTO role_fields VALUES ($1, $2)"
# Digits before and behind the point apart: together with their scale, the product has too many.
CREATE_WHOLE: Final = """
CREATE OR REPLACE TEMP MACRO whole_{measure}(number) AS
    TRY(trunc(number)::HUGEINT * {factor} + ((number % 1) * {factor})::HUGEINT)
"""


@dataclass(frozen=True)
class Inputs:
    """What reconciliation rests on besides rows. Without `mapping`, `problem` says why.

    `mapping_text` is its file, None where that cannot be read. `digest` is one of all that is read
    but the decisions. `decisions` about breaks: number, break_id, kind, person, decided_at, owner,
    reason, and the break's difference (as text) and rows of that time. If a person accepted this
    mapping, that is one of them, about no break. `closes`: those of all months, by the folder of
    their copy. `erased`: digests of identifiers that were erased.

    What follows is added when books are made. `remembered`: Arrow tables, by name, of what is known
    of earlier books; their data ended at `last_as_of`. `may_grow`: who is refused memory begins
    again with more. `connections`: only their rows are reconciled; None: those of all. `own`: what
    own books are read with.
    """

    mapping: Mapping | None
    mapping_text: str | None
    problem: str
    digest: str
    decisions: Sequence[dict[str, Any]]
    closes: dict[Path, Close]
    erased: Sequence[str]
    remembered: dict[str, pa.Table] = field(default_factory=dict)
    last_as_of: datetime | None = None
    may_grow: bool = False
    connections: frozenset[str] | None = None
    own: OwnInputs | None = None

    @property
    def decisions_digest(self) -> str:
        """One of all decisions; empty without any. A restored database may repeat their numbers."""
        if not self.decisions:
            return ""
        text = "\n".join(map(str, self.decisions))
        return sha256(text.encode()).hexdigest()


def begin(db: duckdb.DuckDBPyConnection, inputs: Inputs, terms: dict[str, Any]) -> None:
    """Set terms as variables; create the tables that are there whatever can be evaluated."""
    for name, value in {**terms, "last_as_of": inputs.last_as_of}.items():
        db.execute(f"SET VARIABLE {name} = $1", [value])
    db.execute(BEGIN.format(is_chosen=is_one_of("expected.connection", inputs.connections)))
    db.execute(CREATE_CONNECTIONS)
    if db.execute(HAS_CONNECTIONS).fetchall() == [(True,)]:
        is_chosen = is_one_of("connections.connection", inputs.connections)
        db.execute(INSERT_CONNECTIONS.format(is_chosen=is_chosen))


def remember(db: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    """Create the tables of what is remembered: `remembered_breaks`, and so on."""
    for name, rows in inputs.remembered.items():
        db.from_arrow(rows).query("rows", REMEMBER.format(table=name))


def create_tables(
    db: duckdb.DuckDBPyConnection,
    inputs: Inputs,
    mapping: Mapping,
    types: dict[str, DuckDBPyType],
) -> None:
    """Create what the statements read and write besides the views of rows.

    `types` are those of quantities and amounts.
    """
    for table, amounts in REMEMBERED.items():
        for amount in amounts:
            db.execute(WIDEN.format(table=table, column=amount, type=types["amount"]))
        is_chosen = is_one_of("remembered.connection", inputs.connections)
        db.execute(CREATE_MEMORY.format(table=table, is_chosen=is_chosen))
    units = ", ".join(f"('{code}', {minor_unit(code)})" for code in sorted(CODES))
    db.execute(CREATE_TABLES.format(**types, currencies=units))
    for terms in _tolerances(mapping):
        db.execute(INSERT_TOLERANCE, terms)
    for material in mapping.material_amounts().items():
        db.execute(INSERT_MATERIALITY, material)
    for fee in _accepted_fees(mapping):
        db.execute(INSERT_FEE, fee)
    db.execute(CREATE_FIELDS)
    db.executemany(INSERT_FIELD, list(_fields(mapping).items()))
    replace_decisions(db, inputs.decisions)


def create_whole_numbers(db: duckdb.DuckDBPyConnection, types: dict[str, DuckDBPyType]) -> None:
    """Create macros that make a quantity, or an amount and a minor unit, a whole number.

    It is NULL if it has more than 38 digits.
    """
    for measure, least in (("quantity", 0), ("amount", MOST_DIGITS)):
        factor = 10 ** max(decimal_scale(types[measure]), least)
        db.execute(CREATE_WHOLE.format(measure=measure, factor=factor))


def replace_decisions(db: duckdb.DuckDBPyConnection, decisions: Sequence[dict[str, Any]]) -> None:
    """Replace the decisions in books. What they say of breaks is in views."""
    try:
        db.execute("DELETE FROM reconciliation.decisions")
    except duckdb.CatalogException:
        return  # nothing was evaluated, so there is no break
    if decisions:
        rows = db.from_arrow(pa.Table.from_pylist(list(decisions)))
        rows.query("added", "INSERT INTO reconciliation.decisions BY NAME FROM added")


def _tolerances(mapping: Mapping) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `tolerances`: those of currencies, then those of partners."""
    for code, terms in mapping.tolerance.currency.items():
        yield read_code(code), None, terms.line_minor, terms.line_share, terms.month_minor
    for partner, terms in mapping.tolerance.partner.items():
        yield None, partner, terms.line_minor, terms.line_share, terms.month_minor


def _accepted_fees(mapping: Mapping) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `accepted_fees`: one without a currency of a kind that has no limit."""
    for kind, fee in mapping.accepted_fees.items():
        has_field = fee.field is not None
        if not fee.up_to:
            yield kind, has_field, None, None
        for code, up_to in fee.up_to.items():
            yield kind, has_field, read_code(code), up_to


def _fields(mapping: Mapping) -> dict[str, str]:
    """Return the field of each role, and of the list that holds the lines."""
    fields = mapping.fields()
    of_lines = [path for role, path in fields.items() if is_of_lines(role)]
    fields["billing.lines"] = of_lines[0].partition("[]")[0] if of_lines else ""
    return fields
