"""Named locks: who has one keeps the others waiting, on this machine or on several.

Files in the state folder, or advisory locks of PostgreSQL where the ledger is there. The system, or
PostgreSQL, frees a lock when its process dies in whatever way. Not here: what each lock is for.
"""

import hashlib
import os
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import filelock
from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import OperationalError

from pipelines.errors import StorageFailed
from pipelines.state import postgresql

FOREVER = float("inf")
# Milliseconds that a wait in PostgreSQL's queue lasts before Ctrl-C is heard; then it queues again.
SLICE = 1000
SOMEBODY = "another run"
HOLDER = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted "
    "AND locktype = 'advisory' AND objsubid = 1 AND datname = current_database() "
    "AND (classid::bigint << 32) | objid::bigint = :key"
)
# All that a connection has: a wait that ends in the moment in which PostgreSQL gives it the lock
# fails and has it, and with the next one twice.
FREE = select(func.pg_advisory_unlock_all())
_mine = threading.local()  # the locks that this thread has taken and may take again


class Lock(ABC):
    """One lock, as one of those who want it; in a `with` it waits, however long."""

    @abstractmethod
    def acquire(self, wait: float = 0.0) -> bool:
        """Take it, waiting so many seconds at most; tell whether it is ours."""

    @abstractmethod
    def release(self) -> None:
        """Let it go."""

    @abstractmethod
    def holder(self) -> str:
        """Say who has it, as far as that is known."""

    def __enter__(self) -> Self:
        self.acquire(FOREVER)
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


class Locks(Protocol):
    """The locks of one ledger, by their names."""

    def lock(self, name: str, *, shared: bool = False, again: bool = False) -> Lock:
        """Return a lock that nobody has taken yet.

        Any number may have it `shared` at a time, or one alone. With `again` the thread that has it
        may take it again, and whoever waits is told who has it: for what takes minutes.
        """


def of(ledger: Engine, folder: Path) -> Locks:
    """Return the locks of a ledger; `folder` is that of its file, and of lock files."""
    return Advisory(ledger) if ledger.dialect.name == "postgresql" else Files(folder)


@dataclass(frozen=True)
class Files:
    """Lock files in a folder: of one machine."""

    folder: Path

    def lock(self, name: str, *, shared: bool = False, again: bool = False) -> Lock:
        """Return a lock; a file is never shared, which keeps out more than it has to."""
        del shared
        return _File(self.folder / name, again=again)


class _File(Lock):
    def __init__(self, place: Path, *, again: bool) -> None:
        self._lock = filelock.FileLock(f"{place}.lock", is_singleton=again)
        # Nothing can be written into the lock's own file.
        self._sign = place.with_name(f"{place.name}.pid") if again else None

    def acquire(self, wait: float = 0.0) -> bool:
        try:
            self._lock.acquire(timeout=-1 if wait == FOREVER else wait, blocking=wait > 0)
        except filelock.Timeout:
            return False
        if self._sign:
            self._sign.write_text(str(os.getpid()))
        return True

    def release(self) -> None:
        if self._sign and self._lock.lock_counter == 1:
            self._sign.unlink(missing_ok=True)
        self._lock.release()

    def holder(self) -> str:
        if self._sign is None:
            return SOMEBODY
        try:
            return f"{SOMEBODY} (process {int(self._sign.read_text())})"
        except (OSError, ValueError):
            return SOMEBODY


class Advisory:
    """Advisory locks of PostgreSQL, each held by a connection with no other use until it is let go.

    A connection that is lost loses its lock. So these keep work from being done twice; what must
    never be twice is a key of a table.
    """

    def __init__(self, ledger: Engine) -> None:
        self._engine = ledger

    def lock(self, name: str, *, shared: bool = False, again: bool = False) -> Lock:
        """Return a lock of the database."""
        return _Advisory(self._engine, name, shared=shared, again=again)


class _Advisory(Lock):
    def __init__(self, engine: Engine, name: str, *, shared: bool, again: bool) -> None:
        self._engine, self._again = engine, again
        self._key, self._kind = key(name), "_shared" if shared else ""
        self._name = (str(engine.url), name, shared)
        self._connection: Connection | None = None

    def acquire(self, wait: float = 0.0) -> bool:
        if self._again and (count := _counts().get(self._name, 0)):
            _counts()[self._name] = count + 1
            return True
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.info[postgresql.LOCKED] = True  # until it is sure that it has none
        taken = False
        try:
            taken = self._now(connection) or (wait > 0 and self._queued(connection, wait))
            if not taken:
                del connection.info[postgresql.LOCKED]
        finally:
            if not taken:
                connection.close()
        if taken:
            self._connection = connection
            _counts()[self._name] = 1
        return taken

    def release(self) -> None:
        counts = _counts()
        counts[self._name] = counts.get(self._name, 1) - 1
        if self._connection is None:
            return
        # Where the connection is gone, so is the lock.
        with suppress(StorageFailed):
            self._connection.execute(FREE)
            del self._connection.info[postgresql.LOCKED]
        self._connection.close()
        self._connection = None

    def holder(self) -> str:
        with self._engine.connect() as connection:
            name = connection.execute(HOLDER, {"key": self._key}).scalar()
        return f"{SOMEBODY} ({name.removeprefix(postgresql.US)})" if name else SOMEBODY

    def _now(self, connection: Connection) -> bool:
        attempt = getattr(func, f"pg_try_advisory_lock{self._kind}")
        return bool(connection.execute(select(attempt(self._key))).scalar())

    def _queued(self, connection: Connection, wait: float) -> bool:
        """Wait in PostgreSQL's queue: whoever shares does not keep out who wants it alone."""
        ends, taken = time.monotonic() + wait, False
        attempt = select(getattr(func, f"pg_advisory_lock{self._kind}")(self._key))
        while not taken and (left := ends - time.monotonic()) > 0:
            connection.exec_driver_sql(f"SET lock_timeout = {max(1, min(SLICE, left * 1000)):.0f}")
            with suppress(OperationalError):  # the time is over; all worse is a StorageFailed
                connection.execute(attempt)
                taken = True
        connection.exec_driver_sql("RESET lock_timeout")  # others have the connection next
        if not taken:
            connection.execute(FREE)
        return taken


def _counts() -> dict[tuple[str, str, bool], int]:
    """Return how often this thread has taken each lock."""
    counts: dict[tuple[str, str, bool], int] = vars(_mine).setdefault("counts", {})
    return counts


def key(name: str) -> int:
    """Return the number of a lock in PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
