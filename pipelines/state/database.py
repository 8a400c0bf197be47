"""Opening the ledger's database."""

from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

import filelock
from sqlalchemy import URL, Connection, Engine, create_engine, event

from pipelines.state.tables import METADATA


def _configure(connection: SQLiteConnection, _record: object) -> None:
    """Durable commits, readers beside one writer, and transactions that SQLAlchemy begins."""
    connection.isolation_level = None
    connection.execute("PRAGMA busy_timeout = 30000")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: Connection) -> None:
    """Begin where SQLAlchemy says so (the driver would begin late, and not for reads)."""
    connection.exec_driver_sql("BEGIN")


def connect(folder: Path) -> Engine:
    """Open (or create) the ledger in the state folder."""
    # Not as text: a "?" or "%" in the folder's name would mean something else there.
    engine = create_engine(URL.create("sqlite", database=str(folder / "state.sqlite")))
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    # SQLite does not wait where two processes make a new file WAL: one would fail, locked.
    with filelock.FileLock(folder / "state.lock"):
        METADATA.create_all(engine)
    return engine
