"""The guard against mass disappearance: how many rows may be gone in one reading.

A service that breaks answers short lists. So a reading that lacks too much is held back, noted in
`meta.held_back`, and a person says whether the records are truly gone. Not here: what becomes of
missing rows (merge).
"""

from dataclasses import astuple, dataclass, fields
from datetime import date

import duckdb

from pipelines.errors import LandingFailed
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.database import exists

SHARE = 0.1
TABLE = """
CREATE TABLE IF NOT EXISTS meta.held_back (
    connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE, there BIGINT, gone BIGINT,
    read BIGINT
)
"""


@dataclass(frozen=True)
class HeldBack:
    """A manifest that is not folded: of the rows `there`, `gone` are not among those `read`."""

    connection: str
    stream: str
    manifest: str
    day: date
    there: int
    gone: int
    read: int


class Disappeared(LandingFailed):
    """More rows are gone than may be. A person decides."""

    def __init__(self, text: str, held: HeldBack) -> None:
        super().__init__(text)
        self.held = held


@dataclass(frozen=True)
class Guard:
    """What may be gone of a list; `accepted`: a person said that what this manifest lacks is.

    `may_be_empty`: all of it may be gone.
    """

    share: float = SHARE
    may_be_empty: bool = False
    accepted: bool = False

    def judge(self, manifest: Manifest, there: int, gone: int) -> None:
        """Raise Disappeared where more is gone of what was there than may be, or all of it."""
        empty = gone == there and not manifest.rows
        few = gone <= max(1, int(there * self.share)) and gone < there
        if self.accepted or not gone or few or (empty and self.may_be_empty):
            return
        name, connection = manifest.stream, manifest.connection
        accept = f"run `partner-sync disappeared accept {name} --connection {connection}`"
        found = HeldBack(connection, name, manifest.file, manifest.day, there, gone, manifest.rows)
        if empty:
            raise Disappeared(
                f"{name}: the service answered an empty list where {there:,} rows were. They stay "
                f"published. If it is true this once, {accept}; if it may be so, set "
                f"may_be_empty = true in [streams.{name}].",
                found,
            )
        raise Disappeared(
            f"{name}: {gone:,} of {there:,} rows are gone in {manifest.file}, more than "
            f"{self.share:.0%}. The stream keeps its last published rows. If they are truly gone, "
            f"{accept}; if not, run sync again: the next reading is compared with the rows kept.",
            found,
        )


def note(database: duckdb.DuckDBPyConnection, held: HeldBack) -> None:
    """Say that a manifest is held back."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(TABLE)
    database.execute("DELETE FROM meta.held_back WHERE manifest = ?", [held.manifest])
    marks = ", ".join("?" * len(fields(HeldBack)))
    database.execute(f"INSERT INTO meta.held_back VALUES ({marks})", list(astuple(held)))


def forget(database: duckdb.DuckDBPyConnection, connection: str, stream: str) -> None:
    """Say that nothing of a stream is held back: a later reading is folded."""
    database.execute(TABLE)
    database.execute(
        "DELETE FROM meta.held_back WHERE connection = ? AND stream = ?", [connection, stream]
    )


def held_back(database: duckdb.DuckDBPyConnection) -> list[HeldBack]:
    """Return what is held back, in the order in which it was read."""
    if not exists(database, "meta", "held_back"):
        return []
    rows = database.execute("SELECT * FROM meta.held_back ORDER BY rowid").fetchall()
    return [HeldBack(*row) for row in rows]
