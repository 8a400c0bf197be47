"""The published file as its readers see it: opened read-only, in UTC, its tables and their rows.

Frames and exports are made of it. Making it is publish.py's; the work database is never opened.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from pipelines.errors import ConfigurationError, NothingPublished, StorageFailed
from pipelines.settings import Home
from pipelines.warehouse import lake, snapshots
from pipelines.warehouse.database import exists, quoted

BATCH = 20_000  # rows in memory at a time
WHOLE = {"HUGEINT", "UHUGEINT", "UBIGINT"}  # Arrow or SQL have no such integers
# What every destination can hold as it is; anything else is written as DuckDB's text of it.
KNOWN = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("FLOAT", "DOUBLE", "DATE", "VARCHAR", "BLOB", "TIMESTAMP WITH TIME ZONE"),
}
# Tables, and of the views those of history: `current.<stream>_seen` repeats its table.
LISTED = """
    SELECT schema_name, table_name, true AS stored FROM duckdb_tables() WHERE NOT temporary
    UNION ALL
    SELECT schema_name, view_name, schema_name = 'history' FROM duckdb_views() WHERE NOT internal
    ORDER BY ALL
"""
T = TypeVar("T")
# By who asks: the version that a process looked at last, and the answer.
_KEPT = dict[Callable[[Any], Any], tuple[tuple[object, ...], Any]]()


@dataclass(frozen=True)
class Table:
    """A table or view, the query that reads it, and what its columns are."""

    schema: str
    name: str
    query: str
    columns: pa.Schema

    @property
    def title(self) -> str:
        """Its name as it is written in SQL: current.usage."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Published:
    """One published version, opened."""

    database: duckdb.DuckDBPyConnection
    file: Path

    @property
    def version(self) -> str:
        """The part of the file's name that counts: v00000042."""
        return self.file.stem.rpartition(".")[2]

    def tables(self, names: Sequence[str] = ()) -> list[Table]:
        """Return the tables named, or all of current and history; `usage` is `current.usage`.

        Raises ConfigurationError for one that this version does not have.
        """
        if not names:
            wanted = [each for each in self._listed if self._listed[each]]
            wanted = [each for each in wanted if each[0] in {"current", "history"}]
            return [self._table(*each) for each in wanted]
        return [self._table(*self._found(each)) for each in dict.fromkeys(names)]

    def rows(
        self, table: tuple[str, str], query: str, values: object = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none where this version has not the table it is of."""
        there = exists(self.database, *table)
        return self.database.execute(query, values).fetchall() if there else []

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield a query's rows, some thousands at a time.

        Raises StorageFailed where they cannot be read to their end.
        """
        reader = self.database.sql(query).to_arrow_reader(BATCH)
        while (batch := self._next(reader)) is not None:
            yield batch

    def _next(self, reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
        try:
            return next(reader, None)
        except OSError as error:  # Arrow's word for whatever DuckDB says half-way
            raise StorageFailed(
                f"{self.file.name} cannot be read to its end: {error}. Nothing of it has changed: "
                "see that the disk, or the lake's store, answers, and run it again."
            ) from None

    @cached_property
    def _listed(self) -> dict[tuple[str, str], bool]:
        found = self.database.execute(LISTED).fetchall()
        return {(schema, name): bool(stored) for schema, name, stored in found}

    def _found(self, name: str) -> tuple[str, str]:
        schema, _, table = name.rpartition(".")
        if (schema or "current", table) not in self._listed:
            known = ", ".join(".".join(each) for each in self._listed)
            raise ConfigurationError(f"no table {name!r} in {self.file.name}; there are {known}")
        return schema or "current", table

    def _table(self, schema: str, name: str) -> Table:
        described = self.database.execute(f"DESCRIBE {quoted(schema, name)}").fetchall()
        columns = ", ".join(_read(column, kind) for column, kind, *_rest in described)
        query = f"SELECT {columns} FROM {quoted(schema, name)}"
        empty = self.database.sql(f"{query} LIMIT 0").to_arrow_table()
        return Table(schema, name, query, empty.schema)


def _read(column: str, kind: str) -> str:
    """Return the SQL that reads a column as a kind that every destination knows."""
    if kind in KNOWN or kind.startswith("DECIMAL"):
        return quoted(column)
    wanted = "DECIMAL(38, 0)" if kind in WHOLE else "VARCHAR"
    return f"CAST({quoted(column)} AS {wanted}) AS {quoted(column)}"


@contextmanager
def opened(home: Home) -> Iterator[Published]:
    """Open the published version as `connected` does, and let go of it at the end.

    Raises StorageFailed where a lake goes away meanwhile.
    """
    with lake.in_words() if home.warehouse else nullcontext():
        source = connected(home)
        try:
            yield source
        finally:
            source.database.close()


def rows(
    home: Home, table: tuple[str, str], query: str, values: object = None
) -> list[tuple[Any, ...]]:
    """Return the rows of a query; none where nothing is published, or not the table it is of."""
    with suppress(NothingPublished), opened(home) as source:
        return source.rows(table, query, values)
    return []


def kept(home: Home, ask: Callable[[Published], T]) -> T:
    """Return the answer of the version that is published now; a process asks each version once.

    A version says the same for ever, and every run of a night wants to know: of a lake each would
    read a file for every fold. Raises NothingPublished.
    """
    seen, answer = _KEPT.get(ask, ((), None))
    if seen != (now := _seen(home)):
        with opened(home) as source:
            answer = ask(source)
        if now == _seen(home):  # else another came meanwhile: whose answer it is, nobody knows
            _KEPT[ask] = now, answer
    found: T = answer
    return found


def _seen(home: Home) -> tuple[object, ...]:
    """Return what tells the version that analysts see now from every other."""
    if home.warehouse:
        return home, *snapshots.seen(home)
    _file(home)
    found = home.link.stat()  # of what it leads to: an older file may be gone the next moment
    return home, found.st_ino, found.st_mtime_ns


def _file(home: Home) -> Path:
    if not home.link.is_file():
        raise NothingPublished(
            f"nothing was published yet: there is no {home.link}. Run partner-sync sync, or set "
            "PARTNER_SYNC_HOME to the home whose tables are wanted."
        )
    return home.link.resolve()


def connected(home: Home) -> Published:
    """Open the version that is published now; a later publication does not disturb it.

    Raises NothingPublished where nothing was published yet.
    """
    if home.warehouse:
        database, number = snapshots.opened(home)
        return Published(database, Path(snapshots.name(number)))
    file = _file(home)
    database = duckdb.connect(file, read_only=True)
    database.execute("SET TimeZone = 'UTC'")
    return Published(database, file)
