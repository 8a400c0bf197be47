"""Opens the metadata database: SQLite by default, PostgreSQL by URL. Nothing else knows which."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session


class Metadata:
    """The metadata database. Every transaction is one call of `transaction`."""

    engine: Engine
    locks: Path

    @classmethod
    def open(cls, file: Path, url: str | None = None) -> "Metadata":
        """Open the database and bring its tables up to date (Alembic). Raises StorageFailed."""
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed at the end, or rolled back on an error.

        SQLite: BEGIN IMMEDIATE, so that a reader never has to upgrade. Raises StorageFailed.
        """
        raise NotImplementedError

    def now(self, session: Session) -> float:
        """Return the Unix time that all processes share: `clock_timestamp()` on PostgreSQL."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError


def this_process() -> str:
    """Return a name of this process that no later process has: host, id, start time."""
    process = psutil.Process()
    return f"{socket.gethostname()}:{os.getpid()}:{process.create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Return whether the process named by `this_process` still runs; True for another host's."""
    host, process_id, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        return f"{psutil.Process(int(process_id)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False
