"""The schema of a stream as a version keeps it: one row of meta.columns for each column.

Here: reading and writing that table. Not here: how the schema grows (`schema.py`).
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

import duckdb

from pipelines.config.settings import Stream
from pipelines.config.types import DeclaredType
from pipelines.load.paths import FieldPath, json_path
from pipelines.load.place import Kind, Place
from pipelines.load.schema import Schema
from pipelines.load.target import Target

CREATE_COLUMNS = """
CREATE TABLE IF NOT EXISTS meta.columns (
    stream VARCHAR, table_name VARCHAR, column_name VARCHAR, part VARCHAR, type VARCHAR,
    path VARCHAR, steps VARCHAR, digits INTEGER, position INTEGER, candidates VARCHAR,
    declared VARCHAR
)
"""
SELECT_COLUMNS = """
SELECT
    columns.steps, columns.table_name, columns.column_name,
    columns.part, columns.type, columns.digits, columns.candidates, columns.declared
FROM meta.columns AS columns
WHERE columns.stream = $stream AND columns.part IN ('value', 'count')
ORDER BY columns.position
"""
INSERT_COLUMN = """
INSERT INTO meta.columns VALUES (
    $stream, $table_name, $column_name, $part, $type,
    $path, $steps, $digits, $position, $candidates,
    $declared
)
"""
SELECT_ALL = """
SELECT
    columns.stream, columns.table_name, columns.column_name, columns.part, columns.type,
    columns.path, columns.steps, columns.digits, columns.position, columns.candidates,
    columns.declared
FROM meta.columns AS columns
WHERE columns.stream = $stream
ORDER BY columns.position
"""
DELETE_COLUMNS = "DELETE FROM meta.columns WHERE columns.stream = $stream"


def read_schema(
    target: Target,
    stream: Stream,
    kinds: Mapping[FieldPath, Kind],
    maps: Collection[FieldPath],
) -> Schema:
    """Return the schema of a stream as meta.columns holds it.

    Beside that, `kinds` are of values that were read as another kind before, `maps` objects that
    become tables.
    """
    places = read_places(target.db, target.scan.header.stream)
    schema = Schema(
        target.scan.header.stream,
        grows=stream.contract != "discard" or not places,
        decides_again=stream.contract == "evolve",
        declared=stream.types,
        kinds={**kinds},
        maps=frozenset(maps),
    )
    schema.places |= places
    for place in places.values():
        place.grows = schema.grows
    schema.known = schema.types
    return schema


def read_places(db: duckdb.DuckDBPyConnection, stream: str) -> dict[FieldPath, Place]:
    """Return the places of a stream that have columns, and the objects around them."""
    places = dict[FieldPath, Place]()
    rows = db.execute(SELECT_COLUMNS, {"stream": stream}).fetchall()
    for steps, table, name, part, column_type, digits, candidates, declared in rows:
        path = tuple(json.loads(steps))
        _add_objects_around(places, path, table, stream)
        kind, scale = _parse_type(column_type)
        place = Place(path, table, kind, name, scale, digits)
        if candidates:
            place.candidates = tuple(map(Kind, candidates.split(",")))
        if declared is not None:
            place.declared = DeclaredType.model_validate_json(declared)
        if part == "count":
            place.kind = Kind.LIST
            place.name = name.removesuffix("__count")
        if place.is_map_name:
            places[path[:-2]].kind = Kind.MAP
        places[path] = place
    return places


def _add_objects_around(
    places: dict[FieldPath, Place], path: FieldPath, table: str, stream: str
) -> None:
    """Add the objects that a path of a table goes through: they have no column of their own."""
    outer_table = stream
    for end in range(1, len(path)):
        inner = path[:end]
        if inner not in places:
            is_item = inner[-1] is None
            places[inner] = Place(inner, table if is_item else outer_table, Kind.OBJECT)
        outer_table = places[inner].table


def _parse_type(column_type: str) -> tuple[Kind, int]:
    """Return the kind and the scale of a type such as `DECIMAL(38,2)[]`."""
    kind, _, size = column_type.removesuffix("[]").removesuffix(")").partition("(")
    _, _, scale = size.partition(",")
    return Kind(kind), int(scale or 0)


def write_schema(db: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    """Replace the rows of a stream in meta.columns, if one differs."""
    rows = _rows_of(schema)
    # Most scans change no column, and each insertion costs half a millisecond.
    stored = db.execute(SELECT_ALL, {"stream": schema.stream}).fetchall()
    if stored == [tuple(row.values()) for row in rows]:
        return
    db.execute(DELETE_COLUMNS, {"stream": schema.stream})
    for row in rows:
        db.execute(INSERT_COLUMN, row)


def _rows_of(schema: Schema) -> list[dict[str, Any]]:
    """Return the rows of a stream, each in the order of the columns of meta.columns."""
    rows = list[dict[str, Any]]()
    for place in schema.places.values():
        declared = None
        if place.declared is not None:
            declared = place.declared.model_dump_json()
        for part, name, column_type in place.columns():
            row = {
                "stream": schema.stream,
                "table_name": place.table,
                "column_name": name,
                "part": part,
                "type": column_type,
                "path": json_path(place.path),
                "steps": json.dumps(place.path),
                "digits": place.digits,
                "position": len(rows),
                "candidates": ",".join(place.candidates),
                "declared": declared,
            }
            rows.append(row)
    return rows
