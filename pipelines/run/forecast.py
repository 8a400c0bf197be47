"""What the next sync will cost, from the last proofs: requests, minutes, tokens, the schedule.

Here: arithmetic on what the ledger knows; nothing is sent. A list that was never read has no plan.
A list that was counted is expected to cost the same again: its order changes unpredictably.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from pipelines.api import paging
from pipelines.run.order import Order
from pipelines.run.pace import allowed
from pipelines.run.session import Session
from pipelines.settings import Settings
from pipelines.state import journal
from pipelines.state.proof import Grade, Proof
from pipelines.streams.base import Stream

WHOAMI = 1  # asked once before a connection's lists
NOTES = {
    Grade.COMPLETE_BY_COUNT: "counted, because its order changes",
    Grade.PARTIAL: "counted, and PARTIAL last time",
    Grade.UNSTABLE_ORDER: "counted, because its order changes",
}
TOKEN_SECONDS = 3600.0 - 60.0  # the documented life, renewed a minute before it ends


@dataclass(frozen=True)
class StreamPlan:
    """One list: rows at its last reading, and the requests that they take; None: never read.

    `note` is why the list takes more requests than its length suggests; empty if it does not.
    """

    connection: str
    stream: str
    rows: int | None
    requests: int | None
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What reading everything again takes; `seconds` for the busiest connection.

    `tokens` counts calls of the identity provider. `begins` is now, `scheduled` the next night.
    """

    streams: tuple[StreamPlan, ...]
    seconds: float
    tokens: int
    begins: datetime
    scheduled: datetime

    @property
    def requests(self) -> int:
        """Requests in all, as far as they are known."""
        connections = {each.connection for each in self.streams}
        return WHOAMI * len(connections) + sum(each.requests or 0 for each in self.streams)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The lists whose length nobody knows yet."""
        return tuple(each.stream for each in self.streams if each.requests is None)

    @property
    def notes(self) -> tuple[str, ...]:
        """The lists that take more requests than their length suggests, each with the reason."""
        several = len({each.connection for each in self.streams}) > 1
        return tuple(
            f"{each.stream}{f' of {each.connection}' if several else ''} is {each.note}"
            for each in self.streams
            if each.note
        )

    @property
    def ends(self) -> datetime:
        """When it would be done, begun now and undisturbed."""
        return self.begins + timedelta(seconds=self.seconds)

    @property
    def collides(self) -> bool:
        """Whether it would still run when the next scheduled night begins."""
        return self.ends >= self.scheduled


def plan(session: Session, orders: Sequence[Order]) -> Plan:
    """Say what syncing these orders now would cost."""
    planned = [[_stream(session, order, each) for each in order.streams] for order in orders]
    seconds = [
        (WHOAMI + sum(each.requests or 0 for each in streams))
        / allowed(session.settings, order.connection)
        for order, streams in zip(orders, planned, strict=True)
    ]
    now = session.clock.now()
    return Plan(
        streams=tuple(each for streams in planned for each in streams),
        seconds=max(seconds, default=0.0),
        tokens=sum(
            1 + int(each // TOKEN_SECONDS)
            for order, each in zip(orders, seconds, strict=True)
            if order.connection.surface == "partner"
        ),
        begins=now,
        scheduled=next_night(session.settings, now),
    )


def next_night(settings: Settings, now: datetime) -> datetime:
    """Return when the schedule begins next, in its own time zone."""
    return next(CronSim(settings.schedule, now.astimezone(ZoneInfo(settings.time_zone))))


def _stream(session: Session, order: Order, stream: Stream) -> StreamPlan:
    newest = journal.newest(session.ledger, stream.name, order.connection.name)
    if newest is None:
        return StreamPlan(order.connection.name, stream.name, None, None)
    proof = newest.proof
    cost = paging.quiet_cost(proof.rows, stream.limit)
    note = NOTES.get(proof.grade, "")
    if note:
        cost = max(_counted(session, order, proof), 2 * _whole(proof, stream))
    return StreamPlan(order.connection.name, stream.name, proof.rows, cost, note)


def _counted(session: Session, order: Order, proof: Proof) -> int:
    """Return the requests of the last count, limited by the current `sync_max_minutes`."""
    minutes = session.settings.sync_max_minutes
    if minutes is None:
        return proof.requests
    return min(proof.requests, int(60 * minutes * allowed(session.settings, order.connection)))


def _whole(proof: Proof, stream: Stream) -> int:
    """Return the requests of one pass; every list is read to its end twice before it is PARTIAL."""
    return paging.quiet_cost(max(proof.rows, proof.places or 0), stream.limit)
