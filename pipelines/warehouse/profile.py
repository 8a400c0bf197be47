"""A stream's tables as a catalog shows them: rows, columns, how full each is, keys that are twice.

Counts only, never a value of a record: what shows them keeps them for ever. Not here: the same for
analysts, in the published file (dictionary, totals).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import duckdb

from pipelines.warehouse import comments, registry
from pipelines.warehouse.columns import Given, Source, sources
from pipelines.warehouse.database import literal, quoted, scalar

COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE schema_name = $schema AND NOT internal AND NOT ends_with(table_name, '_seen')
  AND (table_name = $stream OR starts_with(table_name, $stream || '__'))
ORDER BY table_name, column_index
"""
# By their hashes, which take little memory. Two keys of a million have one hash in common once in
# thirty million nights; then a check warns in vain.
TWICE = "SELECT count(*) - count(DISTINCT hash(_connection, {key})) FROM {table} {whose}"


@dataclass(frozen=True)
class Column:
    """One column; `path` is where its values are in a record, None where it is of our making.

    `values` is how many rows have one, None where that was not counted.
    """

    table: str
    name: str
    type: str
    path: str | None
    description: str
    values: int | None = None


@dataclass(frozen=True)
class Profile:
    """One stream's tables of one schema; `rows` by table, `twice` rows whose key another has."""

    stream: str
    rows: Mapping[str, int]
    columns: tuple[Column, ...]
    twice: int = 0

    @property
    def own(self) -> tuple[Column, ...]:
        """The columns of the stream's own table, its children's apart."""
        return tuple(each for each in self.columns if each.table == self.stream)


def current(
    database: duckdb.DuckDBPyConnection,
    stream: str,
    key: str | None,
    connections: Collection[str] | None = None,
) -> Profile | None:
    """Return what a stream's current tables are; None where there are none yet.

    `key` is the field that tells its records apart, None where all that a record says does. Counted
    are the rows of some connections, of all where it is None.
    """
    given = _given(database, stream)
    listed = _listed(database, "current", stream, given)
    if not listed:
        return None
    rows, columns, whose = dict[str, int](), list[Column](), _whose(connections)
    for table in dict.fromkeys(each.table for each in listed):
        its = [each for each in listed if each.table == table]
        counted = ", ".join(f"count({quoted(each.name)})" for each in its)
        query = f"SELECT count(*), {counted} FROM {quoted('current', table)} {whose}"
        [(rows[table], *values)] = database.execute(query).fetchall()
        columns += [replace(each, values=value) for each, value in zip(its, values, strict=True)]
    own = given.get(stream, {})
    name = "_key" if key is None else own.get(json.dumps([key, ""]), "")
    there = any((each.table, each.name) == (stream, name) for each in columns)
    query = TWICE.format(key=quoted(name), table=quoted("current", stream), whose=whose)
    return Profile(stream, rows, tuple(columns), scalar(database, query) if there else 0)


def history(
    database: duckdb.DuckDBPyConnection, stream: str, connections: Collection[str] | None = None
) -> Profile | None:
    """Return what a stream's history is: its versions and their columns; None without any."""
    listed = _listed(database, "history", stream, _given(database, stream))
    own = tuple(each for each in listed if each.table == stream)
    if not own:
        return None
    source = f"{quoted('history', stream)} {_whose(connections)}"
    versions = scalar(database, f"SELECT count(*) FROM {source}")
    return Profile(stream, {stream: versions}, own)


def _whose(connections: Collection[str] | None) -> str:
    """Return the condition that rows are of some connections: one that leaves out their files."""
    if connections is None:
        return ""
    return f"WHERE _connection IN ({', '.join(map(literal, connections))})"


def _given(database: duckdb.DuckDBPyConnection, stream: str) -> Given:
    known = registry.registered(database, stream)
    return {} if known is None else known.names


def _listed(
    database: duckdb.DuckDBPyConnection, schema: str, stream: str, given: Given
) -> list[Column]:
    whence = sources(stream, given)
    found = database.execute(COLUMNS, {"schema": schema, "stream": stream}).fetchall()
    return [
        _column(table, name, kind, (text, whence.get((table, name))))
        for table, name, kind, text in found
    ]


def _column(table: str, name: str, kind: str, said: tuple[str | None, Source | None]) -> Column:
    text, source = said
    words = text or (source.words if source else comments.LINEAGE.get(name, ""))
    return Column(table, name, kind, source.path if source else None, words)
