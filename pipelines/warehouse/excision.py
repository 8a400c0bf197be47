"""Excision: an identifier out of a base snapshot, whose pages are gone and cannot be redacted.

Each version of which a column says it goes; of a stream with arrays, where an item may say it, the
record with all its versions. Here: the tables of the snapshot. Not here: the archive's pages
(redaction), the snapshot's file and record (base).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipelines.warehouse.database import exists, literal, quoted
from pipelines.warehouse.redaction import Sought

SCHEMAS = ("current", "past")
NEWEST = "SELECT connection, stream, max(number) FROM meta.folds GROUP BY ALL"


@dataclass(frozen=True)
class Excision:
    """One identifier, and the database that it is taken out of."""

    database: duckdb.DuckDBPyConnection
    sought: Sought

    def apply(self) -> int:
        """Delete what says the identifier, and count the rows anew; return how many rows went."""
        streams = self.database.execute("SELECT DISTINCT stream FROM meta.folds").fetchall()
        gone = sum(self._stream(stream) for (stream,) in streams)
        for connection, stream, number in self.database.execute(NEWEST).fetchall():
            self._recount(connection, stream)
            held = ("current", "quarantine")
            counts = [self._count(schema, stream, connection) for schema in held]
            self.database.execute(
                "UPDATE meta.folds SET rows = ?, quarantined = ? "
                "WHERE connection = ? AND stream = ? AND number = ?",
                [*counts, connection, stream, number],
            )
        return gone

    def _recount(self, connection: str, stream: str) -> None:
        """Let every fold say how many of the versions that are left ended with it."""
        if not exists(self.database, "past", stream):
            return
        which, past = {"connection": connection, "stream": stream}, quoted("past", stream)
        for why in ("changed", "restated"):
            self.database.execute(
                f"UPDATE meta.folds SET {why} = (SELECT count(*) FROM {past} p WHERE p._connection "
                f"= $connection AND p.why = '{why}' AND p.valid_to = folds.ended_at) "
                "WHERE connection = $connection AND stream = $stream",
                which,
            )
        # A missing row ends with an earlier reading than the one that noticed it.
        self.database.execute(
            "UPDATE meta.folds SET gone = least(gone, greatest(0, (SELECT count(*) FROM "
            f"{past} p WHERE p._connection = $connection AND p.why = 'missing') - coalesce("
            "(SELECT sum(f.gone) FROM meta.folds f WHERE f.connection = $connection AND f.stream = "
            "$stream AND f.number < folds.number), 0))) "
            "WHERE connection = $connection AND stream = $stream",
            which,
        )

    def _stream(self, stream: str) -> int:
        children = list(self._children(stream))
        gone = self._delete("quarantine", stream)
        if not children:
            return gone + sum(self._delete(schema, stream) for schema in SCHEMAS)
        key = quoted(self._columns("current", children[0])[1])  # after _connection
        every = [(schema, table) for schema in SCHEMAS for table in (stream, *children)]
        told = " UNION ".join(
            f"SELECT _connection, {key} AS key FROM {quoted(*each)} WHERE {self._says(*each)}"
            for each in every
        )
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE excised AS {told}")
        for each in every:
            deleted = self.database.execute(
                f"DELETE FROM {quoted(*each)} WHERE (_connection, {key}) IN (FROM excised)"
            ).fetchall()
            gone += int(deleted[0][0]) if each[1] == stream else 0
        self.database.execute("DROP TABLE excised")
        return gone

    def _children(self, stream: str) -> Iterator[str]:
        """Yield the tables of a stream's arrays, those that `past` has too."""
        tables = self.database.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'current' "
            "AND starts_with(table_name, ?) ORDER BY ALL",
            [f"{stream}__"],
        ).fetchall()
        for (table,) in tables:
            if exists(self.database, "past", table):
                yield table

    def _delete(self, schema: str, table: str) -> int:
        if not exists(self.database, schema, table):
            return 0
        where = self._says(schema, table)
        deleted = self.database.execute(f"DELETE FROM {quoted(schema, table)} WHERE {where}")
        return int(deleted.fetchall()[0][0])

    def _says(self, schema: str, table: str) -> str:
        """Return the condition that a row says the identifier: a value, or one within JSON."""
        text = literal(self.sought.identifier)
        inside = text if self.sought.within else literal(f'"{self.sought.identifier}"')
        names = [f"{quoted(each)}::VARCHAR" for each in self._columns(schema, table)]
        return " OR ".join(
            f"coalesce({name} = {text} OR contains({name}, {inside}), false)" for name in names
        )

    def _columns(self, schema: str, table: str) -> list[str]:
        rows = self.database.execute(f"DESCRIBE {quoted(schema, table)}").fetchall()
        return [name for name, *_rest in rows]

    def _count(self, schema: str, stream: str, connection: str) -> int:
        if not exists(self.database, schema, stream):
            return 0
        rows = self.database.execute(
            f"SELECT count(*) FROM {quoted(schema, stream)} WHERE _connection = ?", [connection]
        ).fetchall()
        return int(rows[0][0])


def written_anew(source: Path, file: Path) -> None:
    """Copy a database value by value: no free block of the new file has what was deleted."""
    file.unlink(missing_ok=True)
    names = {"source": str(source), "file": str(file)}
    with duckdb.connect(config={"threads": 1}) as both:
        both.execute(f"ATTACH {literal(names['source'])} AS source (READ_ONLY)")
        both.execute(f"ATTACH {literal(names['file'])} AS fresh (STORAGE_VERSION 'v1.4.0')")
        both.execute("COPY FROM DATABASE source TO fresh")
