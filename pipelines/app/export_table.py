"""A table or view of the published version, as an export reads it."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core.text import quote_identifier

BATCH_ROWS: Final = 1_000
EXACT: Final = "DECIMAL(38,0)"
# Parquet holds these as floating point, and few databases have them.
WIDE_INTEGERS: Final = {"UBIGINT": EXACT, "HUGEINT": EXACT, "UHUGEINT": EXACT}
TABLES: Final = """
SELECT
    columns.schema_name, columns.table_name,
    list((columns.column_name, columns.data_type) ORDER BY columns.column_index)
FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND NOT columns.internal
GROUP BY ALL
ORDER BY ALL
"""


class Column(NamedTuple):
    """A column and its type in DuckDB. `kind` is the type without sizes; a list's ends in `[]`."""

    name: str
    type: str
    kind: str


@dataclass(frozen=True)
class ExportTable:
    """A table or view. `title` is `schema.table`."""

    db: duckdb.DuckDBPyConnection
    schema: str
    table: str
    columns: tuple[Column, ...]

    @property
    def title(self) -> str:
        """Schema and name, as `--table` takes them."""
        return f"{self.schema}.{self.table}"

    @property
    def name(self) -> str:
        """The name of its file, or of its table in another database."""
        return self.table if self.schema == "current" else f"{self.schema}__{self.table}"

    def query(self, native: Container[str] | None = None) -> str:
        """Return the query for all rows. Kinds that are not `native` (None: all are) become text.

        A list becomes JSON text with numbers as strings, as `_extra` has them.
        """
        columns = ", ".join(_expression(column, native) for column in self.columns)
        return f"SELECT {columns} FROM {self._quoted} AS exported"

    def rows(self, native: Container[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield all rows in batches."""
        found = self.db.execute(self.query(native))
        while batch := found.fetchmany(BATCH_ROWS):
            yield batch

    def count(self) -> int:
        """Return the number of rows."""
        ((count,),) = self.db.execute(f"SELECT count(*) FROM {self._quoted}").fetchall()
        return int(count)

    @property
    def _quoted(self) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(self.table)}"


def _expression(column: Column, native: Container[str] | None) -> str:
    name, target = quote_identifier(column.name), column.type
    value = f"exported.{name}"
    if native is not None and column.kind not in native:
        if column.type.endswith("[]"):
            value = f"to_json(CAST({value} AS VARCHAR[]))"
        target = "VARCHAR"
    return f"CAST({value} AS {target}) AS {name}"


def list_tables(db: duckdb.DuckDBPyConnection) -> dict[str, ExportTable]:
    """Return the tables and views of a version by `schema.table`."""
    tables = (
        ExportTable(db, schema, table, tuple(_column(*column) for column in columns))
        for schema, table, columns in db.execute(TABLES).fetchall()
    )
    return {table.title: table for table in tables}


def _column(name: str, kind: str) -> Column:
    of_type = WIDE_INTEGERS.get(kind, kind)
    return Column(name, of_type, re.sub(r"\(.*?\)", "", of_type))
