"""Opens the metadata database: SQLite by default, PostgreSQL by URL. Nothing else knows which."""

import os
import secrets
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import PRIVATE_FILE
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.tables import Base

HEAD = "0001"  # the newest revision in migrations/versions
BUSY_SECONDS = 30
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOCK_NUMBER = 7_405_112  # any number: makes transactions on PostgreSQL wait for each other


class Metadata:
    """The metadata database. Every transaction is one call of `transaction`.

    `locks` is the folder of lock files, beside the database's file.
    """

    def __init__(self, engine: Engine, locks: Path) -> None:
        self.engine = engine
        self.locks = locks

    @classmethod
    def open(cls, file: Path, url: str | None = None) -> "Metadata":
        """Open the database and bring its tables up to date (Alembic).

        Raises:
            ConfigurationError: the URL is not usable, or a newer partner-sync wrote the database.
            StorageFailed: the database cannot be read or written.
        """
        metadata = cls(_sqlite(file) if url is None else _postgresql(url), file.parent / "locks")
        try:
            # SQLite does not wait where two processes turn a new file to WAL mode.
            with hold_lock(metadata.locks, "metadata", timeout_seconds=BUSY_SECONDS):
                _prepare(metadata.engine)
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
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            session.connection()  # begin now: a time that is read before would be an old one
            yield session

    def now(self, session: Session) -> float:
        """Return the Unix time that all processes share: `clock_timestamp()` on PostgreSQL."""
        if self.engine.dialect.name == "sqlite":
            return time.time()
        return float(
            session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
        )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _sqlite(file: Path) -> Engine:
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    except OSError as error:
        raise _storage_failed(str(file), error.strerror or "") from error
    # Not as text: a "?" or "%" in the folder's name would mean something else there.
    engine = create_engine(URL.create("sqlite", database=str(file)))
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    event.listen(engine, "handle_error", _translate_error)
    return engine


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Set durable commits, readers beside one writer, and transactions that we begin ourselves."""
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_immediate(connection: Connection) -> None:
    """Begin as a writer: a reader that has to become one fails where another wrote meanwhile."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _postgresql(url: str) -> Engine:
    try:
        # SQLAlchemy's own default is a driver that is not maintained any more.
        engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    except (ArgumentError, ImportError) as error:
        raise ConfigurationError(
            "The setting metadata_url cannot be used: it is not a PostgreSQL URL, or the package "
            "psycopg is not installed. Nothing was read or written.",
            "Set metadata_url to postgresql://user@host/database and install `psycopg`.",
        ) from error
    event.listen(engine, "begin", _wait_for_others)
    event.listen(engine, "handle_error", _translate_error)
    return engine


def _wait_for_others(connection: Connection) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK_NUMBER})")


def _translate_error(context: ExceptionContext) -> None:
    """Raise StorageFailed for what a disk, a server or another process does; not for defects."""
    error = context.original_exception
    is_storage = type(context.sqlalchemy_exception) in {OperationalError, DatabaseError}
    is_defect = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_ERROR
    if is_storage and not is_defect and context.engine is not None:
        raise _storage_failed(str(context.engine.url.database), str(error)) from error


def _storage_failed(place: str, reason: str) -> StorageFailed:
    return StorageFailed(
        f"The metadata database {place} cannot be used: {reason}. Pages that were read are kept; "
        "analysts still see the published version.",
        "Make room, correct the permissions or restore the file from a backup, then run "
        "`partner-sync sync` to resume.",
    )


def _prepare(engine: Engine) -> None:
    """Bring the tables up to date, in one transaction. Raises ConfigurationError for newer ones."""
    config = Config()
    config.set_main_option("script_location", "pipelines.metadata:migrations")
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
        if revision == HEAD:
            return
        config.attributes["connection"] = connection
        if revision is None:  # a new database: as Alembic's cookbook has it
            Base.metadata.create_all(connection)
            command.stamp(config, "head")
            return
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise ConfigurationError(
                f"The metadata database cannot be used by this version of partner-sync ({error}). "
                "A newer version has changed it. Nothing was changed.",
                "Install the newer version of partner-sync again.",
            ) from error


def this_process() -> str:
    """Return a name of this process that no later process has: host, id, start."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_of(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Return whether the process named by `this_process` still runs; True for another host's."""
    host, process_id, start = owner.rsplit(":", 2)
    return host != socket.gethostname() or _start_of(int(process_id)) == start


def _start_of(process_id: int) -> str | None:
    """Return when a process started; None where it does not run, or waits to be reaped."""
    try:
        process = psutil.Process(process_id)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        if sys.platform != "linux":
            return f"{process.create_time():.2f}"
        # Clock ticks since the machine started: nobody sets that clock, unlike the time of day.
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except (psutil.NoSuchProcess, OSError):
        return None
    return f"{BOOT_ID.read_text()[:8]}.{fields[19]}"


def new_id(now: datetime) -> str:
    """Return an identifier of a run or scan that sorts by time."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
