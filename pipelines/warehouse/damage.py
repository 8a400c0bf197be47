"""Damage: tables of a database file of which some block cannot be read any more.

DuckDB checks the checksum of every block that it reads, and reads only what a query needs. Here:
every column of every table is read once. Not here: whether the values are the right ones (totals).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import duckdb

from pipelines.warehouse.database import quoted, tables


@dataclass(frozen=True)
class Damage:
    """A table that cannot be read, the columns it is about, and what the engine says."""

    table: str
    columns: tuple[str, ...]
    error: str

    def __str__(self) -> str:
        return f"{self.table} cannot be read (columns {', '.join(self.columns)}): {self.error}"


def found(database: duckdb.DuckDBPyConnection) -> Iterator[Damage]:
    """Yield what cannot be read; raise duckdb.Error where even the list of tables cannot."""
    for (schema, table), columns in tables(database).items():
        name = quoted(schema, table)
        if error := _error(database, name, columns):
            wrong = [column for column in columns if _error(database, name, [column])]
            yield Damage(f"{schema}.{table}", tuple(wrong or columns), error)


def _error(database: duckdb.DuckDBPyConnection, table: str, columns: Iterable[str]) -> str:
    """Return why columns of a table cannot be read; empty where they can.

    The hash needs every value: counts and extremes are known without reading a block.
    """
    names = ", ".join(map(quoted, columns))
    try:
        database.execute(f"SELECT bit_xor(hash({names})) FROM {table}").fetchall()
    except duckdb.Error as error:
        return str(error)
    return ""
