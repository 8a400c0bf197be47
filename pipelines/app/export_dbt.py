"""Describes tables of the published version as sources of a dbt project."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pipelines.app.export_table import ExportTable

FILE: Final = "sources.yml"
DATABASE: Final = "warehouse"  # as which a dbt profile attaches the published file
COMMENTS: Final = """
SELECT tables.comment FROM duckdb_tables() AS tables
WHERE (tables.schema_name, tables.table_name) = ($schema, $table)
UNION ALL
SELECT views.comment FROM duckdb_views() AS views
WHERE (views.schema_name, views.view_name) = ($schema, $table)
"""
COLUMNS: Final = """
SELECT columns.column_name AS name, columns.data_type, columns.comment AS description
FROM duckdb_columns() AS columns
WHERE (columns.schema_name, columns.table_name) = ($schema, $table)
ORDER BY columns.column_index
"""


def write_sources(tables: Iterable[ExportTable], file: Path) -> None:
    """Write a source for each schema, with the comments of tables and columns as descriptions."""
    schemas: dict[str, list[dict[str, Any]]] = {}
    for table in tables:
        schemas.setdefault(table.schema, []).append(_described(table))
    sources = [
        {"name": schema, "database": DATABASE, "schema": schema, "tables": found}
        for schema, found in schemas.items()
    ]
    document = {"version": 2, "sources": sources}
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")  # JSON is YAML


def _described(table: ExportTable) -> dict[str, Any]:
    bound = {"schema": table.schema, "table": table.table}
    ((comment,),) = table.db.execute(COMMENTS, bound).fetchall()
    names = ("name", "data_type", "description")
    columns = table.db.execute(COLUMNS, bound).fetchall()
    return {
        "name": table.table,
        "description": comment,
        "columns": [dict(zip(names, column, strict=True)) for column in columns],
    }
