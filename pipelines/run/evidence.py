"""What a fold leaves to be shown of each list: its tables, what became of each day, who waits.

For people who look at an asset and its checks; nothing is decided by it. Not here: what stops a
fold (the guards of the warehouse), the published file.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

import duckdb

from pipelines.api.description import Description
from pipelines.run import interface
from pipelines.run.order import Order
from pipelines.run.session import Session
from pipelines.state import journal
from pipelines.state.decisions import Kind
from pipelines.state.descriptions import Difference
from pipelines.streams.base import Stream
from pipelines.warehouse import awaiting, evolution, meta
from pipelines.warehouse.awaiting import Awaiting
from pipelines.warehouse.database import transaction
from pipelines.warehouse.differences import LACKING
from pipelines.warehouse.evolution import Change
from pipelines.warehouse.loss import ValuesLost
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.profile import Profile, Profiles


@dataclass(frozen=True)
class Landing:
    """What became of one list on one day; `before` is the fold before, None for the first."""

    connection: str
    day: date
    fold: Fold
    before: Fold | None

    @property
    def there(self) -> int:
        """Rows that the reading had."""
        return self.fold.rows - self.fold.missing

    @property
    def expected(self) -> int:
        """Rows that the reading before had."""
        return self.before.rows - self.before.missing if self.before else self.there

    @property
    def dropped(self) -> float:
        """The share of the rows by which this reading had fewer; 0 where it had none fewer."""
        return max(0, self.expected - self.there) / max(1, self.expected)


@dataclass(frozen=True)
class Evidence:
    """What there is to show of one stream after the days of a run were folded.

    `changes` are of columns, not those of a stream's first reading, which makes all of them.
    `required`: fields that the interface description says are always there, of the connections of
    the run together; None where it has no description of the list.
    """

    current: Profile | None
    history: Profile | None
    landings: tuple[Landing, ...]
    changes: tuple[Change, ...]
    waiting: tuple[Awaiting, ...]
    differences: tuple[Difference, ...]
    required: int | None
    may_disappear: float

    def awaits(self, kind: Kind) -> tuple[Awaiting, ...]:
        """Return the readings that are held back for a decision of a kind."""
        return tuple(each for each in self.waiting if each.kind is kind)

    @property
    def lacking(self) -> tuple[Difference, ...]:
        """The fields that should always be there and are not."""
        return tuple(each for each in self.differences if each.what in LACKING)


def evidence(session: Session, orders: Sequence[Order]) -> dict[str, Evidence]:
    """Return what there is to show of every stream of the orders, by its name."""
    streams = {each.name: each for order in orders for each in order.streams}
    with session.work.writing() as writer, transaction(writer):
        seen = _see(session, writer, {order.connection.name for order in orders})
        return {name: _of(session, writer, each, orders, seen) for name, each in streams.items()}


def lost(error: BaseException | None) -> bool:
    """Tell whether a fold failed as the loss check missed values, whatever was made of that."""
    return isinstance(error, ValuesLost) or (error is not None and lost(error.__cause__))


@dataclass(frozen=True)
class _Seen:
    """What is the same for every stream of the orders; descriptions by connection."""

    folds: Sequence[Fold]
    waiting: Sequence[Awaiting]
    differences: Sequence[Difference]
    described: Mapping[str, Description | None]


def _see(
    session: Session, writer: duckdb.DuckDBPyConnection, connections: Collection[str]
) -> _Seen:
    own = sorted(connections)
    differences = [each for name in own for each in interface.differing(session, name)]
    described = {name: interface.last(session, name) for name in own}
    return _Seen(meta.folds(writer, own), awaiting.awaited(writer), differences, described)


def _of(
    session: Session,
    writer: duckdb.DuckDBPyConnection,
    stream: Stream,
    orders: Sequence[Order],
    seen: _Seen,
) -> Evidence:
    name = stream.name
    mine = [order for order in orders if stream in order.streams]
    connections = sorted({order.connection.name for order in mine})
    folds = [fold for fold in seen.folds if fold.stream == name]
    days = {(order.connection.name, order.day) for order in mine}
    files = {
        each.manifest for each in folds if each.number > 1 and (each.connection, each.day) in days
    }
    # In a lake others fold meanwhile, and nobody has the time to count everybody's rows each night.
    whose = None if session.work.whole else connections
    profiles = Profiles(writer, name, _key(session, name, connections), whose)
    changes = [each for each in evolution.recorded(writer, name) if each.manifest in files]
    return Evidence(
        current=profiles.current,
        history=profiles.history,
        landings=tuple(_landings(folds, days)),
        changes=tuple(changes),
        waiting=_about(seen.waiting, name, connections),
        differences=_about(seen.differences, name, connections),
        required=_required(stream, [seen.described[each] for each in connections]),
        may_disappear=session.settings.stream(name).may_disappear,
    )


About = TypeVar("About", Awaiting, Difference)


def _about(every: Sequence[About], stream: str, connections: Sequence[str]) -> tuple[About, ...]:
    """Return what is about one stream of some connections."""
    return tuple(each for each in every if each.stream == stream and each.connection in connections)


def _landings(folds: Sequence[Fold], days: set[tuple[str, date]]) -> list[Landing]:
    """Return the last fold of each day, with the last one before that day's, of the same list."""
    found: dict[tuple[str, date], Landing] = {}
    last: dict[str, Fold] = {}
    for fold in folds:
        place = (fold.connection, fold.day)
        if place in days:
            before = found[place].before if place in found else last.get(fold.connection)
            found[place] = Landing(*place, fold, before)
        last[fold.connection] = fold
    return list(found.values())


def _key(session: Session, stream: str, connections: Sequence[str]) -> str | None:
    """Return the field that tells a stream's records apart, as it was read last."""
    newest = [journal.newest(session.ledger, stream, each) for each in connections]
    keys = [each.proof.key for each in newest if each]
    return keys[-1] if keys else None


def _required(stream: Stream, described: Sequence[Description | None]) -> int | None:
    lists = [each.lists[stream.path] for each in described if each and stream.path in each.lists]
    items = [each.item for each in lists if each.item is not None]
    return max((len(item.required) for item in items), default=None)
