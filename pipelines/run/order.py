"""What a run is asked to do, and what became of it: values that every link of the chain shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar
from uuid import uuid4

from pipelines.api.lanes import Lane
from pipelines.errors import ConfigurationError, PartnerSyncError
from pipelines.settings import Connection
from pipelines.state.days import Day
from pipelines.state.journal import ManifestRow
from pipelines.state.runs import Effort
from pipelines.state.versions import Version
from pipelines.streams.base import Stream
from pipelines.warehouse.meta import Fold


@dataclass(frozen=True)
class Choice:
    """What a person asks for: connections and streams by name, all where none is named."""

    connections: Sequence[str] = ()
    streams: Sequence[str] = ()
    lane: Lane = Lane.ADHOC


@dataclass(frozen=True)
class Order:
    """What a run is to do: which streams of which connection and day, under which run's name.

    `refetch` reads a list again though the day has a manifest of it already; `scheduled` says that
    the run was asked for on that day, whenever it came to begin.
    """

    connection: Connection
    day: date
    streams: Sequence[Stream]
    refetch: bool = False
    scheduled: bool = False
    lane: Lane = Lane.ADHOC
    run: str = field(default_factory=lambda: str(uuid4()))

    @property
    def asked(self) -> Day:
        """The same as the ledger sees it."""
        names = tuple(stream.name for stream in self.streams)
        return Day(self.run, self.connection.name, self.day, names)


Read = Mapping[str, ManifestRow | PartnerSyncError]
Folded = Mapping[str, Fold | PartnerSyncError]


@dataclass(frozen=True)
class StreamOutcome:
    """What became of one stream: what was read and folded of it, what it cost, what failed."""

    connection: str
    stream: str
    manifest: ManifestRow | None
    fold: Fold | None
    effort: Effort
    error: PartnerSyncError | None


@dataclass(frozen=True)
class Publication:
    """What analysts open after a run, and in words what it lacks of each order's day."""

    version: Version | None
    lacking: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a sync; `version` is None where nothing was published."""

    streams: tuple[StreamOutcome, ...]
    version: Version | None

    @property
    def exit_code(self) -> int:
        """Return 0 for all published, 1 for nothing, 3 where a stream failed or is PARTIAL.

        2 where nothing was published because settings or credentials are not right.
        """
        if self.version is None:
            ours = all(isinstance(each.error, ConfigurationError) for each in self.streams)
            return 2 if ours else 1
        partial = any(each.manifest and each.manifest.proof.grade.marked for each in self.streams)
        return 3 if partial or any(each.error for each in self.streams) else 0


T = TypeVar("T")


def _or_none(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None


def outcomes(
    order: Order, read: Read, folded: Folded, efforts: Mapping[str, Effort]
) -> tuple[StreamOutcome, ...]:
    """Return what became of each stream of an order."""
    return tuple(
        StreamOutcome(
            order.connection.name,
            name,
            _or_none(ManifestRow, read.get(name)),
            _or_none(Fold, folded[name]),
            efforts.get(name, Effort()),
            _or_none(PartnerSyncError, read.get(name)) or _or_none(PartnerSyncError, folded[name]),
        )
        for name in folded
    )
