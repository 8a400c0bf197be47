"""Comments on every table, view and column of a version, so that it explains itself."""

from typing import Final

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.publish import meta_tables

BARE = """
SELECT 'TABLE' AS kind, tables.schema_name, tables.table_name, NULL AS column_name
FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND NOT tables.internal
    AND NOT tables.temporary AND tables.comment IS NULL
UNION ALL
SELECT 'VIEW', views.schema_name, views.view_name, NULL
FROM duckdb_views() AS views
WHERE views.database_name = current_database() AND NOT views.internal
    AND NOT views.temporary AND views.comment IS NULL
UNION ALL
SELECT 'COLUMN', columns.schema_name, columns.table_name, columns.column_name
FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND NOT columns.internal
    AND columns.schema_name NOT IN ('temp', 'pg_catalog') AND columns.comment IS NULL
UNION ALL
SELECT DISTINCT 'MACRO TABLE', macros.schema_name, macros.function_name, NULL
FROM duckdb_functions() AS macros
WHERE macros.database_name = current_database() AND NOT macros.internal
    AND macros.function_type = 'table_macro' AND macros.comment IS NULL
ORDER BY ALL
"""
HISTORY_COLUMNS = """
SELECT columns.table_name, columns.column_name, columns.comment
FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND columns.schema_name = 'history'
    AND columns.comment IS NOT NULL
"""
SCHEMAS: Final = {
    "history": "Every version of every record of list {table}, with the time in which it held.",
    "current": "Records of list {table} as they were read last.",
    "quarantine": "Records that no table can hold, with the reason.",
}
CHILD: Final = {
    "history": "Items of array {array} of list {table}, for every version of each record.",
    "current": "Items of array {array} of list {table}, as they were read last.",
}
MACRO: Final = "Rows of list {table} as they were known at a moment."
OURS: Final = {
    "_connection": "Connection that read the record.",
    "_key": "What identifies the record: its primary key, or a digest of its content.",
    "_parent_key": "`_key` of the record that the item belongs to.",
    "_index": "Place of the item in its array, from 0.",
    "_parent_index": "`_index` of the item that this item belongs to.",
    "_digest": "First 8 bytes of the SHA-256 of the record as it was sent.",
    "_valid_from": "End of the scan that brought this version of the record.",
    "_valid_to": "End of the scan that ended this version. NULL: it holds.",
    "_end_reason": "Why the version ended: changed or deleted.",
    "_scan_id": "Scan that brought this version; see meta.requests.",
    "_page": "Number of the request that brought it; `page` in meta.requests.",
    "_row": "Place of the record in that page, from 0.",
    "_extra": "What fits no column, as JSON; numbers as text, exactly as sent.",
}
QUARANTINE: Final = {
    "connection": "Connection that read the record.",
    "stream": "List that the record is in.",
    "scan_id": "Scan that read it; see meta.requests.",
    "page": "Number of the request that brought it; `page` in meta.requests.",
    "row": "Place of the record in that page, from 0.",
    "key": "Its primary key. NULL: it cannot be read.",
    "reason": "Why no table can hold it.",
    "raw": "The record as it was sent.",
}
OFFSET: Final = "UTC offset of {column} as it was sent."
COUNT: Final = "Number of items of {column}. NULL: the record has no such array."
FIELD: Final = "Field {column} of the record."


def comment_everything(db: duckdb.DuckDBPyConnection) -> None:
    """Comment every table, view, macro and column that has no comment yet."""
    bare = db.execute(BARE).fetchall()
    known = {
        (table, column): text for table, column, text in db.execute(HISTORY_COLUMNS).fetchall()
    }
    statements = []
    for kind, schema, table, column in bare:
        text = (
            _of_column(schema, table, column, known) if column else _of_table(schema, table, kind)
        )
        name = ".".join(quote_identifier(part) for part in (schema, table, column) if part)
        escaped = text.replace("'", "''")
        statements.append(f"COMMENT ON {kind} {name} IS '{escaped}'")
    db.execute(";".join(statements) or "SELECT 1")


def find_uncommented(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the whole names of everything that has no comment."""
    found = db.execute(BARE).fetchall()
    return [".".join(part for part in parts if part) for _kind, *parts in found]


def _of_table(schema: str, table: str, kind: str) -> str:
    if schema == "meta":
        return META.get((table, ""), f"Table {table} of schema meta.")
    if kind == "MACRO TABLE":
        return MACRO.format(table=table.removesuffix("_as_of"))
    stream, _, array = table.partition("__")
    texts = CHILD if array else SCHEMAS
    return texts.get(schema, "{schema}.{table}").format(schema=schema, table=stream, array=array)


def _of_column(schema: str, table: str, column: str, known: dict[tuple[str, str], str]) -> str:
    if schema == "meta":
        return META.get((table, column), FIELD.format(column=column))
    if schema == "quarantine":
        return QUARANTINE.get(column, FIELD.format(column=column))
    if text := known.get((table, column)) or OURS.get(column):
        return text
    head, _, tail = column.rpartition("__")
    text = {"offset": OFFSET, "count": COUNT}.get(tail, FIELD) if head else FIELD
    return text.format(column=head if text is not FIELD else column)


def _meta_comments() -> dict[tuple[str, str], str]:
    """Return the comments of schema `meta` by table and column; the column "" is the table."""
    texts = {
        (table, column): text
        for table, columns in meta_tables.OTHERS.items()
        for column, text in columns.items()
    }
    for each in meta_tables.TABLES:
        texts[each.name, ""] = each.comment
        texts |= {(each.name, name): text for name, (_kind, text) in each.columns.items()}
    return texts


META: Final = _meta_comments()
