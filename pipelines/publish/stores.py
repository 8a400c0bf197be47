"""What a build needs of its surroundings."""

from collections.abc import Callable
from dataclasses import dataclass

from pipelines.archive.scan_file import Archive
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from pipelines.warehouse.duckdb_file import Warehouse

OnNote = Callable[[str], None]
"""Receives one sentence about a step or a wait."""


@dataclass(frozen=True)
class Stores:
    """Settings and open stores of one home."""

    settings: Settings
    metadata: Metadata
    archive: Archive
    warehouse: Warehouse
    clock: Clock
