"""Here: settings and open stores of one home, which everything that is made of scans needs."""

from collections.abc import Collection
from dataclasses import dataclass

from pipelines.archive.scan_file import Archive
from pipelines.config.home import Home
from pipelines.config.settings import Settings, Stream
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.core.person import user_name
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import Decision
from pipelines.warehouse.version_files import Warehouse


@dataclass(frozen=True)
class Stores:
    """Settings and open stores of one home: what a build needs of its surroundings."""

    settings: Settings
    metadata: Metadata
    archive: Archive
    warehouse: Warehouse
    clock: Clock

    def decision(self, kind: str, subject: str, reason: str) -> Decision:
        """Return a decision that the user of this process takes now."""
        person, now = user_name(), self.clock.utc_now()
        return Decision(decided_at=now, person=person, kind=kind, subject=subject, reason=reason)

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
