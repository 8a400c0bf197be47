"""A stream's tables as a catalog shows them: rows, columns, how full each is, keys that are twice.

Counts only, never a value of a record: what shows them keeps them for ever. Not here: the same for
analysts, in the published file (dictionary, totals).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import duckdb

from pipelines.warehouse import comments, registry
from pipelines.warehouse.columns import Given, Source, sources
from pipelines.warehouse.database import listed, quoted

COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE schema_name = $schema AND NOT internal AND NOT ends_with(table_name, '_seen')
  AND (table_name = $stream OR starts_with(table_name, $stream || '__'))
ORDER BY table_name, column_index
"""
# By their hashes, which take little memory. Two keys of a million have one hash in common once in
# thirty million nights; then a check warns in vain.
TWICE = "count(*) - count(DISTINCT hash(_connection, {key}))"


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


@dataclass(frozen=True)
class Profiles:
    """What a stream's tables are, current ones and history: None where there are none yet.

    `key` is the field that tells its records apart, None where all that a record says does. Counted
    are the rows of some connections, of all where it is None.
    """

    database: duckdb.DuckDBPyConnection
    stream: str
    key: str | None
    connections: Collection[str] | None = None

    @property
    def current(self) -> Profile | None:
        """The tables of the records as they were read last."""
        listed = self._listed("current")
        if not listed:
            return None
        rows, columns, twice = dict[str, int](), list[Column](), 0
        for table in dict.fromkeys(each.table for each in listed):
            its = [each for each in listed if each.table == table]
            asked = ["count(*)", *(f"count({quoted(each.name)})" for each in its), self._twice(its)]
            [(rows[table], *values, again)] = self._asked("current", table, asked)
            columns += [replace(each, values=one) for each, one in zip(its, values, strict=True)]
            twice += again
        return Profile(self.stream, rows, tuple(columns), twice)

    @property
    def history(self) -> Profile | None:
        """The versions and their columns."""
        own = tuple(each for each in self._listed("history") if each.table == self.stream)
        if not own:
            return None
        [(versions,)] = self._asked("history", self.stream, ["count(*)"])
        return Profile(self.stream, {self.stream: versions}, own)

    def _twice(self, columns: Collection[Column]) -> str:
        """Return what counts rows of one table whose key another has: only its own tells rows."""
        own = self._given.get(self.stream, {})
        name = "_key" if self.key is None else own.get(json.dumps([self.key, ""]), "")
        there = any((each.table, each.name) == (self.stream, name) for each in columns)
        return TWICE.format(key=quoted(name)) if there else "0"

    def _asked(self, schema: str, table: str, asked: Collection[str]) -> list[tuple[int, ...]]:
        source = f"{quoted(schema, table)} {self._whose}"
        return self.database.execute(f"SELECT {', '.join(asked)} FROM {source}").fetchall()

    @property
    def _whose(self) -> str:
        """The condition that rows are of these connections: one that leaves out others' files."""
        if self.connections is None:
            return ""
        return f"WHERE _connection IN ({listed(self.connections)})"

    @cached_property
    def _given(self) -> Given:
        known = registry.registered(self.database, self.stream)
        return {} if known is None else known.names

    def _listed(self, schema: str) -> list[Column]:
        whence = sources(self.stream, self._given)
        asked = {"schema": schema, "stream": self.stream}
        return [
            _column(table, name, kind, (text, whence.get((table, name))))
            for table, name, kind, text in self.database.execute(COLUMNS, asked).fetchall()
        ]


def _column(table: str, name: str, kind: str, said: tuple[str | None, Source | None]) -> Column:
    text, source = said
    words = text or (source.words if source else comments.LINEAGE.get(name, ""))
    return Column(table, name, kind, source.path if source else None, words)
