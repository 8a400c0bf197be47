"""What the interface description gives to the tables: `meta.interface_*`, and their comments.

Here: writing it. Not here: what changed (api.changes), what differs (differences).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple

import duckdb
from sqlalchemy import Engine

from pipelines.api.description import Operation
from pipelines.api.fields import Schema
from pipelines.api.problem import cleaned
from pipelines.state import descriptions
from pipelines.warehouse.database import exists, fill, literal, quoted, together

TABLES = {
    "interface_changes": (
        "connection VARCHAR, stream VARCHAR, path VARCHAR, what VARCHAR, before VARCHAR, "
        "after VARCHAR, meaning VARCHAR, first_seen_at TIMESTAMPTZ"
    ),
    "interface_differences": (
        "connection VARCHAR, stream VARCHAR, field VARCHAR, what VARCHAR, described VARCHAR, "
        "found VARCHAR, manifest VARCHAR, seen_at TIMESTAMPTZ"
    ),
}
Path = tuple[str, ...]


def tell(database: duckdb.DuckDBPyConnection, ledger: Engine) -> None:
    """Write what changed in the interface and what differs from it, as the ledger has it."""
    rows = {
        "interface_changes": [astuple(each) for each in descriptions.changes(ledger)],
        "interface_differences": [astuple(each) for each in descriptions.differences(ledger)],
    }
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    for name, columns in TABLES.items():
        database.execute(f"CREATE OR REPLACE TABLE meta.{name} ({columns})")
        fill(database, f"meta.{name}", rows[name])


def comment(
    database: duckdb.DuckDBPyConnection,
    names: Mapping[str, Mapping[str, str]],
    stream: str,
    operation: Operation,
) -> None:
    """Give a stream's tables and columns the texts of the description."""
    if not exists(database, "current", stream):
        return
    table = quoted("current", stream)
    statements = []
    if operation.text:
        statements.append(f"COMMENT ON TABLE {table} IS {_literal(operation.text)}")
    there = {name for name, *_rest in database.execute(f"DESCRIBE {table}").fetchall()}
    texts = dict(_texts(operation.item or Schema(), ()))
    for leaf, name in names.get(stream, {}).items():
        text = texts.get(tuple(json.loads(leaf)[:-1]))
        if text and name in there:
            statements.append(f"COMMENT ON COLUMN {table}.{quoted(name)} IS {_literal(text)}")
    together(database, statements)


def _texts(schema: Schema, path: Path) -> Iterator[tuple[Path, str]]:
    for name, each in schema.fields.items():
        yield (*path, name), each.text
        yield from _texts(each, (*path, name))


def _literal(text: str) -> str:
    """Return a text as SQL writes it, without control characters and not endless."""
    return literal(cleaned(text))
