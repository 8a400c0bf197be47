"""A table or view of the published version or its books, as an export reads it."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core import stop
from pipelines.core.text import quote_identifier

BATCH_ROWS: Final = 1_000
EXACT: Final = "DECIMAL(38,0)"
# Parquet holds these as floating point, and few databases have them.
WIDE_INTEGERS: Final = ("UBIGINT", "HUGEINT")
TABLES: Final = """
WITH relations AS (
    SELECT tables.database_name, tables.schema_name, tables.table_name, tables.comment
    FROM duckdb_tables() AS tables
    UNION ALL
    SELECT views.database_name, views.schema_name, views.view_name, views.comment
    FROM duckdb_views() AS views
)
SELECT
    columns.database_name, columns.schema_name, columns.table_name, any_value(relations.comment),
    list(
        (columns.column_name, columns.data_type, columns.comment) ORDER BY columns.column_index
    )
FROM duckdb_columns() AS columns
JOIN relations USING (database_name, schema_name, table_name)
WHERE columns.database_name IN ('warehouse', 'books', current_database())
    AND NOT columns.internal
GROUP BY columns.database_name, columns.schema_name, columns.table_name
ORDER BY columns.schema_name, columns.table_name, columns.database_name
"""


class ExportColumn(NamedTuple):
    """A column as dbt describes it. `data_type` is its type in DuckDB."""

    name: str
    data_type: str
    description: str | None

    @property
    def type(self) -> str:
        """The type of its values elsewhere, which is exact."""
        return EXACT if self.data_type in WIDE_INTEGERS else self.data_type

    @property
    def kind(self) -> str:
        """The type without sizes; that of a list ends in `[]`."""
        return re.sub(r"\(.*?\)", "", self.type)

    @property
    def value(self) -> str:
        """The expression for its values."""
        return f"CAST(exported.{quote_identifier(self.name)} AS {self.type})"

    @property
    def text(self) -> str:
        """The expression for its values as text.

        A list becomes JSON with numbers as strings, as `_extra` has them.
        """
        value = self.value
        if self.type.endswith("[]"):
            value = f"to_json(CAST({value} AS VARCHAR[]))"
        return f"CAST({value} AS VARCHAR)"


@dataclass(frozen=True)
class ExportTable:
    """A table or view. `title` is `schema.table`."""

    db: duckdb.DuckDBPyConnection
    database: str
    schema: str
    table: str
    comment: str | None
    columns: tuple[ExportColumn, ...]

    @property
    def title(self) -> str:
        """Schema and name, as `--table` takes them."""
        return f"{self.schema}.{self.table}"

    @property
    def name(self) -> str:
        """The name of its file, or of its table in another database."""
        return self.table if self.schema == "current" else f"{self.schema}__{self.table}"

    def query(self, expression: Callable[[ExportColumn], str]) -> str:
        """Return the query for all rows, with what a target gets of each column."""
        columns = [
            f"{expression(column)} AS {quote_identifier(column.name)}" for column in self.columns
        ]
        return f"SELECT {', '.join(columns)} FROM {self._quoted} AS exported"

    def rows(self, expression: Callable[[ExportColumn], str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield all rows in batches."""
        cursor = self.db.execute(self.query(expression))
        while batch := cursor.fetchmany(BATCH_ROWS):
            stop.raise_if_requested()
            yield batch

    def count(self) -> int:
        """Return the number of rows."""
        ((count,),) = self.db.execute(f"SELECT count(*) FROM {self._quoted}").fetchall()
        return int(count)

    @property
    def _quoted(self) -> str:
        names = (self.database, self.schema, self.table)
        return ".".join(map(quote_identifier, names))


def list_tables(db: duckdb.DuckDBPyConnection) -> list[ExportTable]:
    """Return the tables and views of what is open: a version and its books, or one database."""
    tables = []
    for database, schema, table, comment, columns in db.execute(TABLES).fetchall():
        export_columns = tuple(ExportColumn(*column) for column in columns)
        tables.append(ExportTable(db, database, schema, table, comment, export_columns))
    return tables


def describe_sources(tables: Iterable[ExportTable]) -> dict[str, Any]:
    """Return `sources.yml` of a dbt project: a source for each schema, described by comments.

    Schema `meta` is in both files; that of the books is source `books_meta`.
    """
    sources: dict[tuple[str, str], dict[str, Any]] = {}
    for table in tables:
        name = table.schema
        if (table.database, table.schema) == ("books", "meta"):
            name = "books_meta"
        source = sources.setdefault(
            (table.database, table.schema),
            {"name": name, "database": table.database, "schema": table.schema, "tables": []},
        )
        source["tables"].append(
            {
                "name": table.table,
                "description": table.comment,
                "columns": [column._asdict() for column in table.columns],
            }
        )
    return {"version": 2, "sources": [*sources.values()]}
