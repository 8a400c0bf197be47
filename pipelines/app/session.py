"""Everything one command or one Dagster step needs, opened once."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from pipelines.archive.scan_file import Archive
from pipelines.config.home import Home
from pipelines.config.settings import Stream, load_settings
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, MemoryRefused
from pipelines.core.text import Redactor
from pipelines.metadata.engine import Metadata
from pipelines.publish.versions import Stores
from pipelines.warehouse.duckdb_file import Warehouse
from pipelines.warehouse.memory import MemoryLimit, is_refused


@dataclass(frozen=True)
class AppSession(Stores):
    """Settings and open stores of one home. `redactor` knows the credentials of this process."""

    redactor: Redactor

    @property
    def home(self) -> Home:
        """The folders."""
        return self.settings.home

    def lists(
        self, connections: Collection[str] | None = None, streams: Collection[str] | None = None
    ) -> dict[str, list[Stream]]:
        """Return, by connection (none named: all), those of the streams (none named: all) it has.

        A connection that has none of them is left out. Raises ConfigurationError, with the possible
        names, for one that is not configured, and where there is none at all.
        """
        names, read = connections or self.settings.connections(), self.settings.streams_of
        known = {name: read(self.settings.connection(name)) for name in names}
        possible = list(dict.fromkeys(each.name for found in known.values() for each in found))
        if unknown := sorted(set(streams or ()).difference(possible)):
            others = any(each in self.settings.streams for each in unknown)
            raise ConfigurationError(
                f"There is no stream `{', '.join(unknown)}` in {', '.join(known)}. "
                f"{'It is in `skip`, or of another surface. Nothing was read. ' if others else ''}"
                f"Possible streams: {', '.join(possible) or 'none'}."
            )
        asked = streams or possible
        chosen = {name: [each for each in has if each.name in asked] for name, has in known.items()}
        if connections and not any(chosen.values()):
            raise ConfigurationError(
                f"Connection `{'`, `'.join(chosen)}` reads no list. Nothing was requested.",
                f"Run `partner-sync discover {next(iter(chosen))}`: it prints the lines to add to "
                "settings.toml.",
            )
        return {name: has for name, has in chosen.items() if has}


@contextmanager
def open_session(home: Home | None = None, *, clock: Clock | None = None) -> Iterator[AppSession]:
    """Open a home (None: that of the environment).

    Raises ConfigurationError, and creates nothing, where it does not exist or has no connection,
    and MemoryRefused for what the block was refused.
    """
    settings = load_settings(home)
    settings.connections()
    home = settings.home.prepare()
    archive, warehouse = (
        Archive(home.archive),
        Warehouse(home, MemoryLimit.of(settings.memory_limit)),
    )
    metadata = Metadata.open(home.metadata_file, settings.metadata_url)
    try:
        stores = (settings, metadata, archive, warehouse, clock or Clock())
        yield AppSession(*stores, Redactor())
    except duckdb.Error as error:
        if not is_refused(error):
            raise
        raise MemoryRefused(
            "DuckDB needs more memory for this than it may use (memory_limit, now "
            f"{warehouse.memory_limit.text}). Nothing was changed. Analysts still see the "
            "published version.",
            f"Set a larger memory_limit in {home.settings_file}, then run the command again.",
        ) from error
    finally:
        metadata.close()
