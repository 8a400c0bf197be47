"""Manifests that are held back until a person says a word: `meta.awaiting`, one row for each.

Not here: what makes one wait: too many rows gone (disappeared), too many set aside (quarantine),
frozen columns (evolution).
"""

from dataclasses import astuple, dataclass, fields
from datetime import date

import duckdb

from pipelines.errors import LandingFailed
from pipelines.state.decisions import Kind
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.database import exists

TABLE = """
CREATE TABLE IF NOT EXISTS meta.awaiting (
    kind VARCHAR, connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE, count BIGINT,
    words VARCHAR
)
"""


@dataclass(frozen=True)
class Awaiting:
    """A manifest that awaits a decision of a kind; `count` is how many rows or columns of it."""

    kind: Kind
    connection: str
    stream: str
    manifest: str
    day: date
    count: int
    words: str

    @property
    def command(self) -> str:
        """The command that gives the word."""
        return command(self.kind, self.connection, self.stream)


class Awaited(LandingFailed):
    """A manifest may not be folded as it is. A person decides."""

    def __init__(self, kind: Kind, manifest: Manifest, count: int, words: str) -> None:
        where = (manifest.connection, manifest.stream, manifest.file, manifest.day)
        self.awaiting = Awaiting(kind, *where, count, words)
        super().__init__(
            f"{manifest.stream}: {words} The stream keeps its last published rows; its pages are "
            f"archived. If this may be, run `{self.awaiting.command}`."
        )


def command(kind: Kind, connection: str, stream: str) -> str:
    """Return the command with which a person gives a word about a stream."""
    return f"partner-sync {kind} accept {stream} --connection {connection}"


def note(database: duckdb.DuckDBPyConnection, held: Awaiting) -> None:
    """Say that a manifest awaits a word."""
    prepare(database)
    database.execute("DELETE FROM meta.awaiting WHERE manifest = ?", [held.manifest])
    marks = ", ".join("?" * len(fields(Awaiting)))
    database.execute(f"INSERT INTO meta.awaiting VALUES ({marks})", list(astuple(held)))


def prepare(database: duckdb.DuckDBPyConnection) -> None:
    """Let there be the table."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(TABLE)


def forget(database: duckdb.DuckDBPyConnection, connection: str, stream: str) -> None:
    """Say that a stream awaits nothing: a later reading is folded."""
    prepare(database)
    database.execute(
        "DELETE FROM meta.awaiting WHERE connection = ? AND stream = ?", [connection, stream]
    )


def awaited(database: duckdb.DuckDBPyConnection, kind: Kind | None = None) -> list[Awaiting]:
    """Return what awaits a decision, of a kind or any, in the order in which it was read."""
    if not exists(database, "meta", "awaiting"):
        return []
    rows = database.execute(
        "SELECT * FROM meta.awaiting WHERE coalesce(kind = ?, true) ORDER BY rowid", [kind]
    ).fetchall()
    return [Awaiting(Kind(of), *row) for of, *row in rows]
