"""Control totals: the numbers that tell whether two databases hold the same rows."""

from collections.abc import Callable
from typing import Final, NamedTuple

import duckdb

from pipelines.core.errors import BuildFailed
from pipelines.core.text import printable, quote_identifier

# Of records: our own columns, which hold key and digest, and the amounts. Reading all columns twice
# would cost 1.5 CPU seconds for a million rows.
TABLES = """
SELECT
    columns.schema_name,
    columns.table_name,
    list(columns.column_name ORDER BY columns.column_index),
    list(columns.column_name ORDER BY columns.column_index) FILTER (
        starts_with(columns.column_name, '_') OR starts_with(columns.data_type, 'DECIMAL')
    )
FROM duckdb_columns() AS columns
JOIN duckdb_tables() AS tables
    ON tables.database_oid = columns.database_oid AND tables.table_oid = columns.table_oid
WHERE columns.database_name = current_database() AND NOT columns.internal AND NOT tables.temporary
GROUP BY ALL
ORDER BY ALL
"""
# The hash reads every value: a count alone is known without reading a block.
TOTALS = "SELECT count(*), coalesce(bit_xor(hash({columns})), 0) FROM {table}"
SHOWN: Final = 5  # tables that a message names


class Totals(NamedTuple):
    """What is compared of one table: its rows, and a digest of values in any order."""

    rows: int
    digest: int


def control_totals(db: duckdb.DuckDBPyConnection) -> dict[str, Totals]:
    """Return the totals of every table by `schema.table`. Raises duckdb.Error for damage."""
    return {
        f"{schema}.{table}": _totals(db, (schema, table), telling or columns)
        for schema, table, columns, telling in db.execute(TABLES).fetchall()
    }


def _totals(db: duckdb.DuckDBPyConnection, table: tuple[str, str], columns: list[str]) -> Totals:
    statement = TOTALS.format(
        columns=", ".join(quote_identifier(column) for column in columns),
        table=".".join(quote_identifier(part) for part in table),
    )
    return Totals(*db.execute(statement).fetchall()[0])


def require_totals(
    expected: dict[str, Totals],
) -> Callable[[duckdb.DuckDBPyConnection], None]:
    """Return a function that raises BuildFailed for a database with other totals."""

    def verify(db: duckdb.DuckDBPyConnection) -> None:
        try:
            found = control_totals(db)
        except duckdb.Error as error:
            raise _differs(printable(error)) from error
        wrong = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
        if wrong:
            raise _differs(f"other rows in {', '.join(sorted(wrong)[:SHOWN])}")

    return verify


def _differs(how: str) -> BuildFailed:
    return BuildFailed(
        f"The new version is not what was written: {how}. It is not published. Analysts still see "
        "the version before it.",
        "Check the disk, then run `partner-sync versions build`.",
    )
