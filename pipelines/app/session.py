"""Everything one command or one Dagster step needs, opened once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
from sqlalchemy import select

from pipelines.archive.archive import Archive
from pipelines.archive.scan_file import open_path
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, MemoryRefused
from pipelines.core.files import remove
from pipelines.core.text import Redactor
from pipelines.files.open_store import open_store, require_settings
from pipelines.metadata.engine import Metadata
from pipelines.metadata.owner import require_own_database
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.configuration import accept_configuration, require_same_configuration
from pipelines.versions.stores import Stores
from pipelines.warehouse.memory_limit import MemoryLimit, is_memory_refused
from pipelines.warehouse.version_files import Warehouse


@dataclass(frozen=True)
class AppSession(Stores):
    """Settings and open stores of one home. `redactor` knows the credentials of this process."""

    redactor: Redactor


@contextmanager
def open_session(
    home: Home | None = None, *, clock: Clock | None = None, accept_reason: str = ""
) -> Iterator[AppSession]:
    """Open a home (None: that of the environment).

    `accept_reason` is why a person changed the configuration of a home that several machines share;
    without a reason, another one is refused. Raises ConfigurationError, and creates nothing, where
    the home does not exist or has no connection, and MemoryRefused for what the block was refused.
    """
    settings = load_settings(home)
    # They raise before `prepare` creates a folder.
    settings.connections()
    require_settings(settings)
    home = settings.home.prepare()
    memory_limit = MemoryLimit.of(settings.memory_limit)
    metadata = Metadata.open(home.metadata_file, settings.metadata_url)
    clock = clock or Clock()
    try:
        if settings.metadata_url and settings.files is None:
            require_own_database(metadata, home.root, clock)
        store = open_store(settings, metadata, clock)
        session = AppSession(
            settings=settings,
            metadata=metadata,
            archive=Archive(home.archive, store),
            warehouse=Warehouse(home, memory_limit, store),
            clock=clock,
            redactor=Redactor(),
        )
        if accept_reason:
            accept_configuration(session, accept_reason)
        else:
            require_same_configuration(session)
        if settings.files is not None:
            _delete_abandoned(session)
        with _memory_explained(home, memory_limit):
            yield session
    finally:
        metadata.close()


def require_no_secret(text: str) -> None:
    """Refuse a text that is kept if it has the secret of a connection. Raises ConfigurationError.

    Without a home that can be used, no secret is known; the command itself says what is wrong.
    """
    try:
        settings = load_settings()
        settings.connections()
    except ConfigurationError:
        return
    settings.require_no_secret([text])


@contextmanager
def _memory_explained(home: Home, memory_limit: MemoryLimit) -> Iterator[None]:
    """Raise MemoryRefused for memory that DuckDB was refused in the block."""
    try:
        yield
    except duckdb.Error as error:
        if not is_memory_refused(error):
            raise
        raise MemoryRefused(
            "DuckDB needs more memory for this than it may use (memory_limit, now "
            f"{memory_limit.text}). Nothing was changed. Analysts still see the "
            "published version.",
            f"Set a larger memory_limit in {home.settings_file}, then run the command again.",
        ) from error


def _delete_abandoned(session: AppSession) -> None:
    """Delete files of scans on this machine that nobody goes on with.

    Another machine has begun them again, or has erased records and cannot search these files.
    """
    # Before the rows: a row is there before its file.
    files = session.archive.open_files()
    if not files:
        return
    with session.metadata.transaction() as db:
        names = db.scalars(select(Scan.file).filter_by(status=ScanStatus.OPEN)).all()
    wanted = {open_path(session.archive.folder / name) for name in names}
    for file in files:
        if file not in wanted:
            remove(file)
