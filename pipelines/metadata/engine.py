"""Opens the metadata database: SQLite by default, PostgreSQL by URL. Nothing else knows which."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    RootTransaction,
    RowMapping,
    Select,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.pool import NullPool

from pipelines.core.clock import Clock
from pipelines.core.files import PRIVATE_FILE, storing
from pipelines.metadata.locks import Locks, hold_lock
from pipelines.metadata.processes import LOCKS, HeldName, hold_name, this_boot, this_process
from pipelines.metadata.server import (
    postgresql_engine,
    storage_failed,
    translate_error,
    when_reachable,
)
from pipelines.metadata.server_session import ServerSession

HEAD = "0012"  # the newest revision in migrations/versions
BUSY_SECONDS = 30
DURABLE = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
# A reader that has to become a writer fails where another one wrote meanwhile.
WRITER = "BEGIN IMMEDIATE"
# One lock (any number, by schema: that of a home) for all transactions but those of the rate limit.
# These are several for each request: the row of an actor is their lock.
LOCK_ALL = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 7405112))"


@dataclass(frozen=True)
class Metadata:
    """The metadata database, and the locks of its home. Every access is one `transaction`."""

    engine: Engine
    locks: Locks
    patience: float = 0.0  # seconds for which a server may be away
    _held_names: dict[str, HeldName] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(
        cls, file: Path, url: str | None = None, *, busy_seconds: float = BUSY_SECONDS
    ) -> "Metadata":
        """Open the database and bring its tables up to date; the locks are beside the file.

        `busy_seconds` bounds each wait for another transaction, and for a server that is away.

        Raises ConfigurationError for a URL that cannot be used and for a database that a newer
        version wrote, StorageFailed for one that cannot be read or written.
        """
        engine = _open_engine(file, url, busy_seconds)

        def begin_transaction(connection: Connection) -> None:
            if url is None:
                connection.exec_driver_sql(WRITER)
            elif not connection.get_execution_options().get("locks_rows"):
                connection.exec_driver_sql(LOCK_ALL)

        event.listen(engine, "begin", begin_transaction)
        event.listen(engine, "handle_error", translate_error)
        session = None
        patience = 0.0
        if url is not None:
            session = _session_of(url, os.getpid())
            patience = busy_seconds
        metadata = cls(engine, Locks(file.parent / LOCKS, session), patience)
        try:
            # SQLite does not wait where two processes turn a new file to WAL mode.
            # The server has a lock for all transactions.
            only_here = Locks(metadata.locks.folder)
            with hold_lock(only_here, "metadata", timeout_seconds=busy_seconds):
                when_reachable(partial(_migrate, engine), patience)
        except BaseException:
            metadata.close()
            raise
        return metadata

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed at the end, or rolled back on an error.

        Transactions run one after the other on both engines, so none fails for what another did.
        Rows remain usable afterwards. Raises StorageFailed.
        """
        session, transaction = when_reachable(self._begin, self.patience)
        with session, transaction:
            yield session

    def _begin(self) -> tuple[Session, SessionTransaction]:
        session = Session(self.engine, expire_on_commit=False)
        transaction = session.begin()
        try:
            # Begin now, which waits for others: a time that is read before would be an old one.
            session.connection()
        except BaseException:
            session.close()
            raise
        return session, transaction

    @contextmanager
    def row_transaction(
        self, query: Select[Any], values: dict[str, Any]
    ) -> Iterator[tuple[Connection, RowMapping | None]]:
        """Yield a connection in a transaction, and the row that `query` locks (FOR UPDATE) first.

        Those that lock one row run one after the other. On PostgreSQL, nothing else waits for them,
        and they wait for nothing else; SQLite has one writer at a time.
        """
        begin = partial(self._begin_with_row, query, values)
        connection, transaction, row = when_reachable(begin, self.patience)
        with connection, transaction:
            yield connection, row

    def _begin_with_row(
        self, query: Select[Any], values: dict[str, Any]
    ) -> tuple[Connection, RootTransaction, RowMapping | None]:
        connection = self.engine.connect()
        try:
            connection.execution_options(locks_rows=True)
            transaction = connection.begin()
            row = connection.execute(query, values).mappings().one_or_none()
        except BaseException:
            connection.close()
            raise
        return connection, transaction, row

    def now(self, connection: Connection, clock: Clock) -> float:
        """Return seconds of the clock that all processes share and nobody sets.

        That is the monotonic clock of this machine, or `clock_timestamp()` on PostgreSQL.
        """
        if self.engine.dialect.name == "sqlite":
            return clock.monotonic()
        return float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0)

    @property
    def clock_name(self) -> str:
        """The name of the clock that `now` reads: another one after a restart of the machine."""
        return this_boot() if self.engine.dialect.name == "sqlite" else "PostgreSQL"

    def this_process(self) -> str:
        """Return the name of this process, for which it counts as alive until it ends.

        On PostgreSQL, that lasts as long as its session does; with SQLite, to processes of other
        containers, until the database is closed. Raises StorageFailed.
        """
        if self.locks.session is not None:
            return self.locks.session.this_process()
        name = this_process()
        if name not in self._held_names:
            self._held_names[name] = hold_name(self.locks.folder, name)
        return name

    def held_name(self) -> HeldName | None:
        """Return what holds the name of this process; who keeps it holds it after `close`, too.

        None on PostgreSQL, where the session does. Raises StorageFailed.
        """
        return self._held_names.get(self.this_process())

    def verify(self) -> None:
        """Read a SQLite file whole. Raises StorageFailed if it is damaged."""
        if self.engine.dialect.name == "sqlite":
            with self.transaction() as session:
                problems = session.scalars(text("PRAGMA integrity_check")).all()
            if problems != ["ok"]:
                raise storage_failed(str(self.engine.url.database), "; ".join(problems[:3]))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        self._held_names.clear()


def _open_engine(file: Path, url: str | None, busy_seconds: float) -> Engine:
    if url is None:
        return _sqlite(file, busy_seconds)
    # Not the server's default: a snapshot of before the wait would be an old one.
    wait = f"-c lock_timeout={1 + 1000 * busy_seconds:.0f}ms"
    return postgresql_engine(url, "READ COMMITTED", f"{wait} -c timezone=UTC")


def _sqlite(file: Path, busy_seconds: float) -> Engine:
    with storing(file):
        file.touch(mode=PRIVATE_FILE)
    # Not as text: a "?" or "%" in the folder's name would mean something else there.
    url = URL.create("sqlite", database=str(file))
    # Without an isolation level, Python's module begins no transactions: we do.
    options = {"timeout": busy_seconds, "isolation_level": None}
    engine = create_engine(url, connect_args=options)

    def make_durable(connection: sqlite3.Connection, _record: object) -> None:
        connection.executescript(DURABLE)

    event.listen(engine, "connect", make_durable)
    return engine


# It lasts as long as the process: a command may close its database and still work on its run. A
# fork has one of its own.
@cache
def _session_of(url: str, _process_id: int) -> ServerSession:
    """Return the session of this process on the server that has the metadata database."""
    # An own connection, because those of the pool change between transactions.
    engine = postgresql_engine(url, "AUTOCOMMIT", "", poolclass=NullPool)
    event.listen(engine, "handle_error", translate_error)
    return ServerSession(engine, BUSY_SECONDS)


def _migrate(engine: Engine) -> None:
    """Bring the tables up to date, in one transaction. Raises ConfigurationError for newer ones."""
    with engine.begin() as connection:
        revision = None
        if inspect(connection).has_table("alembic_version"):
            revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
        if revision == HEAD:
            return
        from pipelines.metadata import migrate  # noqa: PLC0415 - see there

        if revision is None:
            migrate.create_tables(connection)
        else:
            migrate.upgrade_tables(connection)


def new_id(now: datetime) -> str:
    """Return an identifier of a run or scan that sorts by time, which is in UTC."""
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
