"""Here: settings and open stores of one home, which everything that is made of scans needs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pipelines.archive.archive import Archive
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
        return Decision(
            decided_at=self.clock.utc_now(),
            person=user_name(),
            kind=kind,
            subject=subject,
            reason=reason,
        )

    @property
    def home(self) -> Home:
        """The folder with all files."""
        return self.settings.home

    def lists(
        self, connections: Collection[str] | None = None, streams: Collection[str] | None = None
    ) -> dict[str, list[Stream]]:
        """Return, by connection (none named: all), those of the streams (none named: all) it has.

        A connection that has none of them is left out. Raises ConfigurationError, with the possible
        names, for one that is not configured, and where there is none at all.
        """
        known = dict[str, list[Stream]]()
        for name in connections or self.settings.connections():
            known[name] = self.settings.streams_of(self.settings.connection(name))
        wanted = self._wanted(streams or [], known)
        chosen = dict[str, list[Stream]]()
        for name, lists in known.items():
            wanted_lists = [stream for stream in lists if stream.name in wanted]
            if wanted_lists:
                chosen[name] = wanted_lists
        if connections and not chosen:
            raise ConfigurationError(
                f"Connection `{'`, `'.join(known)}` reads no list. Nothing was requested.",
                f"Run `partner-sync discover {next(iter(known))}`: it prints the lines to add to "
                "settings.toml.",
            )
        return chosen

    def _wanted(
        self, streams: Collection[str], known: Mapping[str, Sequence[Stream]]
    ) -> Collection[str]:
        """Return the names of the streams that are asked for: all of the connections, if none is.

        Raises ConfigurationError for streams that none of the connections reads.
        """
        possible = dict[str, None]()  # each name once, in their order
        for lists in known.values():
            possible.update(dict.fromkeys(stream.name for stream in lists))
        unknown = sorted(set(streams).difference(possible))
        if unknown:
            is_configured = any(name in self.settings.streams for name in unknown)
            why = ""
            if is_configured:
                why = "It is in `skip`, or of another surface. Nothing was read. "
            raise ConfigurationError(
                f"There is no stream `{', '.join(unknown)}` in {', '.join(known)}. "
                f"{why}Possible streams: {', '.join(possible) or 'none'}."
            )
        return streams or possible
