"""Schema `meta` of the work database: the shape of every stream and the names of its columns.

Written in the fold's transaction, so that it is a function of the archive as the tables are: a
fresh build begins without shapes, folds in order and ends with the same ones. Not here: what a
shape is (schema), how names are given (tables).
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from pipelines.warehouse.database import exists

REGISTRY = """
CREATE TABLE IF NOT EXISTS meta.registry (
    stream VARCHAR, number INTEGER, shape VARCHAR, names VARCHAR, manifest VARCHAR,
    recorded_at TIMESTAMPTZ
)
"""


@dataclass(frozen=True)
class Registered:
    """A stream's shape and the names its paths were given, both as JSON."""

    shape: Any
    names: Any


def registered(database: duckdb.DuckDBPyConnection, stream: str) -> Registered | None:
    """Return what is registered of a stream; None where nothing is."""
    if not exists(database, "meta", "registry"):
        return None
    rows = database.execute(
        "SELECT shape, names FROM meta.registry WHERE stream = ? ORDER BY number DESC LIMIT 1",
        [stream],
    ).fetchall()
    return Registered(*map(json.loads, rows[0])) if rows else None


def register(
    database: duckdb.DuckDBPyConnection,
    stream: str,
    wider: Registered,
    manifest: str,
    recorded_at: datetime,
) -> None:
    """Record a wider shape with its names, and the manifest that needed it."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(REGISTRY)
    database.execute(
        "INSERT INTO meta.registry SELECT ?, count(*) + 1, ?, ?, ?, ? FROM meta.registry "
        "WHERE stream = ?",
        [stream, json.dumps(wider.shape), json.dumps(wider.names), manifest, recorded_at, stream],
    )
