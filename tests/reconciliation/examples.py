"""A rule's own examples as the two sides: real tables of a database that holds nothing else."""

from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb

from pipelines.reconciliation import Example
from pipelines.reconciliation.base import Row
from pipelines.settings.mapping import Mapping
from pipelines.warehouse import matching
from pipelines.warehouse.matching import Matching
from pipelines.warehouse.roles import SIDES, Column, Roles

CONNECTION = "default"
AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
NOTHING = Mapping()
GIVEN = Mapping.model_validate(
    {"usage": {"id": "id"}, "billing": {"id": "id", "line_usage": "lines[].usage"}}
)
# Every role is known: the examples bring the columns themselves.
KNOWN = Roles(
    {
        f"{side}.{role}": Column(side, role, "DECIMAL(38,2)")
        for side in SIDES
        for role in type(getattr(GIVEN, side)).model_fields
    },
    {},
    {side: side for side in SIDES},
)


def laid_out_empty(database: duckdb.DuckDBPyConnection, own: Mapping = NOTHING) -> None:
    """Lay out two sides without a row, on the terms of a mapping."""
    database.execute("SET TimeZone = 'UTC'")
    matching.prepare(database, own, AS_OF)


def laid_out(
    database: duckdb.DuckDBPyConnection, example: Example, own: Mapping = NOTHING
) -> Matching:
    """Fill the two sides with an example's rows, each bill once, and match them."""
    laid_out_empty(database, own)
    bills = {row["bill"]: row for row in reversed(example.billed)}.values()
    rows: dict[str, Sequence[Row]] = {
        "used": [{"key": row["id"], **row} for row in example.used],
        "billed": [{"key": row["reference"], **row} for row in example.billed],
        "bills": [
            {name: value for name, value in row.items() if name not in {"id", "reference"}}
            for row in bills
        ],
        "used_versions": list(example.versions),
        "payers": [{"partner": partner} for partner in example.payers],
        "units": [{"currency": "EUR", "unit": "0.01"}],
    }
    for table, some in rows.items():
        filled(database, table, some)
    found = Matching(GIVEN, KNOWN, AS_OF)
    matching.match(database, found)
    return found


def filled(database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Put rows in the place of a view of one side; what they do not say is NULL."""
    kinds = database.execute(f"DESCRIBE {table}").fetchall()
    columns = {name: kind.replace(",0)", ",2)") for name, kind, *_rest in kinds}
    database.execute(f"DROP {'TABLE' if table == 'units' else 'VIEW'} {table}")
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    database.execute(f"CREATE TEMP TABLE {table} ({listed})")
    for row in rows:
        given = {"connection": CONNECTION, **row} if table != "units" else dict(row)
        given = {name: value for name, value in given.items() if name in columns}
        marks = ", ".join("?" * len(given))
        named = ", ".join(given)
        database.execute(f"INSERT INTO {table} ({named}) VALUES ({marks})", list(given.values()))
