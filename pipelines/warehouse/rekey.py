"""A key that becomes text: every row there is keeps its key, spelled as the text of it.

So records whose ids were numbers and are texts now stay the same records, with their history. Not
here: who lets a key become text (quarantine, decode).
"""

from collections.abc import Iterable

import duckdb

from pipelines.warehouse.database import exists, quoted
from pipelines.warehouse.history import PAST

TYPE = """
SELECT data_type, coalesce(numeric_scale, 0) FROM duckdb_columns()
WHERE schema_name = ? AND table_name = ? AND column_name = ?
"""


def spell(database: duckdb.DuckDBPyConnection, tables: Iterable[str], column: str) -> None:
    """Turn the column of a key into text in every table that has it, past ones too."""
    for table in tables:
        for schema in ("current", PAST):
            if exists(database, schema, table):
                _spell(database, schema, table, column)


def _spell(database: duckdb.DuckDBPyConnection, schema: str, table: str, column: str) -> None:
    for kind, scale in database.execute(TYPE, [schema, table, column]).fetchall():
        if kind == "VARCHAR":
            continue
        text = f"{quoted(column)}::VARCHAR"
        text = f"rtrim(rtrim({text}, '0'), '.')" if scale else text
        name = quoted(schema, table)
        database.execute(
            f"ALTER TABLE {name} ALTER {quoted(column)} SET DATA TYPE VARCHAR USING {text}"
        )
