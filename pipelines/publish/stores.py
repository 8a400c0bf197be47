"""Here: settings and open stores of one home, which everything that is made of scans needs."""

from collections.abc import Collection, Sequence
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
        known = {
            name: self.settings.streams_of(self.settings.connection(name))
            for name in connections or self.settings.connections()
        }
        possible = list(dict.fromkeys(stream.name for lists in known.values() for stream in lists))
        unknown = sorted(set(streams or []).difference(possible))
        if unknown:
            raise self._no_such_stream(unknown, list(known), possible)
        chosen = known
        if streams:
            chosen = {
                name: [stream for stream in lists if stream.name in streams]
                for name, lists in known.items()
            }
        chosen = {name: lists for name, lists in chosen.items() if lists}
        if connections and not chosen:
            raise ConfigurationError(
                f"Connection `{'`, `'.join(known)}` reads no list. Nothing was requested.",
                f"Run `partner-sync discover {next(iter(known))}`: it prints the lines to add to "
                "settings.toml.",
            )
        return chosen

    def _no_such_stream(
        self, unknown: Sequence[str], connections: Sequence[str], possible: Sequence[str]
    ) -> ConfigurationError:
        """Return the error about streams that none of some connections reads."""
        is_configured = any(name in self.settings.streams for name in unknown)
        why = "It is in `skip`, or of another surface. Nothing was read. " if is_configured else ""
        return ConfigurationError(
            f"There is no stream `{', '.join(unknown)}` in {', '.join(connections)}. "
            f"{why}Possible streams: {', '.join(possible) or 'none'}."
        )
