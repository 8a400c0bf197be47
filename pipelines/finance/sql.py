"""Answers SQL over the published books and their version, names joined, read-only."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.finance.reconciled import create_rows, open_books_of
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.version_files import Warehouse

# All rows of both sides, which books do not store, with the names of partners.
ROWS: Final = """
CREATE TEMP VIEW {name} AS
SELECT
    coalesce(names.partner, rows.partner, 'no partner') AS partner,
    rows.* EXCLUDE (partner) RENAME (apart AS set_apart), rows.partner AS partner_id
FROM (SELECT sides.*{apart} FROM temp.{side} AS sides) AS rows
LEFT JOIN finance.names AS names
    ON names.connection = rows.connection AND names.partner_id = rows.partner
"""
VIEWS: Final = {
    "used_records": ("used", ", NULL::VARCHAR AS apart"),
    "billed_lines": ("billed", ""),
}


@contextmanager
def open_for_queries(warehouse: Warehouse) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the published books with their version, and temporary views of all rows.

    `used_records`, `billed_lines` and `matches` (all pairs) are missing where nothing is mapped.
    Raises PartnerSyncError.
    """
    with open_books_of(warehouse) as (_version, db):
        with suppress(ConfigurationError, duckdb.CatalogException):
            create_rows(db)
            for name, (side, apart) in VIEWS.items():
                db.execute(ROWS.format(name=name, side=side, apart=apart))
        yield db


def answer(db: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    """Return the rows of a query. Raises ConfigurationError for what DuckDB refuses."""
    try:
        result = db.execute(query)
        names = _distinct([column[0] for column in result.description or ()])
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    except duckdb.Error as error:
        raise ConfigurationError(f"DuckDB: {printable(error)}") from error


def _distinct(names: list[str]) -> list[str]:
    """Return names of columns, of which a repeated one gets a number: no value is lost."""
    distinct: list[str] = []
    for name in names:
        unique = name
        number = 1
        while unique in distinct:
            number += 1
            unique = f"{name}_{number}"
        distinct.append(unique)
    return distinct
