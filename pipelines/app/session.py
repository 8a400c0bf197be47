"""Everything one command or one Dagster step needs, opened once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipelines.archive.store import Archive
from pipelines.config.home import Home
from pipelines.config.settings import Settings, load_settings
from pipelines.core.clock import Clock, SystemClock
from pipelines.core.text import Redactor
from pipelines.metadata.engine import Metadata
from pipelines.warehouse.duckdb_file import DuckDBFiles
from pipelines.warehouse.protocol import Warehouse


@dataclass(frozen=True)
class AppSession:
    """Settings and open stores of one home. `redactor` knows the credentials of this process."""

    settings: Settings
    metadata: Metadata
    archive: Archive
    warehouse: Warehouse
    clock: Clock
    redactor: Redactor

    @property
    def home(self) -> Home:
        """The folders."""
        return self.settings.places


@contextmanager
def open_session(home: Home | None = None, *, clock: Clock | None = None) -> Iterator[AppSession]:
    """Open a home (None: that of the environment).

    Raises ConfigurationError, and creates nothing, where it does not exist or has no connection.
    """
    home = (home or Home.from_environment()).require()
    settings = load_settings(home)
    settings.connections()
    home.prepare()
    metadata = Metadata.open(home.metadata_file, settings.metadata_url)
    try:
        yield AppSession(
            settings=settings,
            metadata=metadata,
            archive=Archive(home.archive),
            warehouse=DuckDBFiles(home, memory_limit=settings.memory_limit),
            clock=clock or SystemClock(),
            redactor=Redactor(),
        )
    finally:
        metadata.close()
