"""What every run works with: one home opened, and who is told while it runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.settings import Settings
from pipelines.state import database, locks
from pipelines.state.locks import Locks
from pipelines.warehouse.archive import Archive, opened
from pipelines.warehouse.database import Work
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.scan import Progress


def _silent(_news: object) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Watch:
    """Who is told while it runs: pages as they are read, and reasons to wait."""

    progress: Callable[[Progress], None] = _silent
    waiting: Callable[[str], None] = _silent


@dataclass(frozen=True)
class Session:
    """One home, opened: its ledger, archive and work database, for every connection of it."""

    settings: Settings
    ledger: Engine
    archive: Archive
    work: Work | Lake
    clock: Clock
    watch: Watch

    @property
    def locks(self) -> Locks:
        """The locks of the home, or of all machines that share its ledger."""
        return locks.of(self.ledger, self.settings.place.state)


@contextmanager
def open(  # noqa: A001
    settings: Settings, watch: Watch = Watch(), clock: Clock | None = None
) -> Iterator[Session]:
    """Yield a session on the settings' home; files made in it are its owner's alone."""
    home = settings.place
    home.prepare()
    mask = os.umask(0o077)  # DuckDB and SQLite would make theirs readable to all
    try:
        ledger = database.connect(home.state, settings.state)
        try:
            own, held = clock or settings.clock, locks.of(ledger, home.state)
            work = _warehouse(settings, watch, held)
            archive = opened(home, settings.archive, held)
            yield Session(settings, ledger, archive, work, own, watch)
        finally:
            database.leave(ledger)
    finally:
        os.umask(mask)


def _warehouse(settings: Settings, watch: Watch, held: Locks) -> Work | Lake:
    """Return where the tables are: in the home, or in the lake of several machines."""
    home, limit = settings.place, settings.memory_limit
    if home.warehouse:
        return Lake(home, limit, watch.waiting, held)
    return Work(home, limit, watch.waiting, locks=held)
