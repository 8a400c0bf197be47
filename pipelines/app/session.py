"""Everything one command or one Dagster step needs, opened once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipelines.config.home import Home
from pipelines.config.settings import Settings, load_settings
from pipelines.core.clock import Clock, SystemClock
from pipelines.core.text import Redactor
from pipelines.metadata.engine import Metadata
from pipelines.warehouse.protocol import Warehouse


@dataclass(frozen=True)
class AppSession:
    """Settings and open stores of one home. `redactor` knows the credentials of this process."""

    settings: Settings
    metadata: Metadata
    archive: Any
    warehouse: Warehouse
    clock: Clock
    redactor: Redactor


@contextmanager
def open_session(
    home: Home | None = None, *, create: bool = False, clock: Clock | None = None
) -> Iterator[AppSession]:
    """Open a home; `create` makes its folders, otherwise it must exist. Raises ConfigurationError."""
    home = home or Home.from_environment()
    _ = home.prepare() if create else home.require()
    _ = load_settings(home), clock or SystemClock()
    raise NotImplementedError
    yield
