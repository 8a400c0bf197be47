"""What a build needs of its surroundings."""

from collections.abc import Callable
from typing import Protocol

from pipelines.archive.store import Archive
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from pipelines.warehouse.protocol import Warehouse

OnNote = Callable[[str], None]
"""Receives one sentence about a step or a wait."""


def ignore_note(_note: str) -> None:
    """Ignore a note."""


class BuildStores(Protocol):
    """Open stores and settings of one home. `app.session.AppSession` is one."""

    @property
    def settings(self) -> Settings:
        """All settings."""

    @property
    def metadata(self) -> Metadata:
        """The metadata database."""

    @property
    def archive(self) -> Archive:
        """Scan files."""

    @property
    def warehouse(self) -> Warehouse:
        """Versions."""

    @property
    def clock(self) -> Clock:
        """The time."""
