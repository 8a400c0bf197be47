"""What a run will do about a day, said before anything is sent: replay, fetch, or neither.

The reading of the lists decides by the same rule. Not here: reading them (reading), the arithmetic
of what it costs (forecast).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from pipelines.run.forecast import Plan, plan
from pipelines.run.order import Order
from pipelines.run.session import Session
from pipelines.state import days, runs
from pipelines.state.journal import ManifestRow
from pipelines.streams.base import Stream
from pipelines.warehouse.scan import since

# A run of day D may read under D until this time of the next day, UTC: a night that began late
# or waited long is still that night.
GRACE = time(12)
NO_PLAN = "nothing is sent"


@dataclass(frozen=True)
class Intent:
    """What becomes of each list of an order.

    `there` are manifests that stand for the day, `fetched` is asked for, `unread` can be asked for
    no more. `plan` is what fetching costs, None where nothing is fetched.
    """

    order: Order
    there: Mapping[str, ManifestRow]
    fetched: tuple[Stream, ...]
    unread: tuple[str, ...]
    plan: Plan | None = None

    @property
    def requests(self) -> int:
        """Requests to be sent, as far as lengths are known."""
        return self.plan.requests + self.plan.tokens if self.plan else 0

    @property
    def minutes(self) -> float:
        """Minutes that they take undisturbed."""
        return self.plan.seconds / 60 if self.plan else 0.0

    def does(self, stream: str) -> str:
        """Say what becomes of one list."""
        if stream in self.there:
            return f"replay of {self.there[stream].file}, 0 requests"
        if stream in self.unread:
            return "nothing: it was not read on that day, and the service tells only what is today"
        planned = self.plan.streams if self.plan else ()
        cost = next((each for each in planned if each.stream == stream), None)
        if cost is None or cost.requests is None:
            return "fetch, of unknown length"
        note = f" ({cost.note})" if cost.note else ""
        return f"fetch, about {cost.requests:,} requests{note}"

    @property
    def words(self) -> str:
        """The same for all lists on one line."""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if self.there:
            yield f"replay of {', '.join(sorted(self.there))} from the archive, 0 requests"
        if self.unread:
            yield f"nothing for {', '.join(self.unread)}: not read on that day, which is over"
        if self.plan:
            yield f"fetch of {', '.join(each.name for each in self.fetched)}"
            yield f"about {self.requests:,} requests, {self.minutes:,.1f} minutes"
            yield from self.plan.notes
            if self.plan.unknown:
                yield f"never read, so not in this sum: {', '.join(self.plan.unknown)}"
            night = f"{self.plan.scheduled:%Y-%m-%d %H:%M %Z}"
            meets = "it would still run then" if self.plan.collides else "it will be over by then"
            yield f"the next night begins at {night}: {meets}"
        else:
            yield NO_PLAN


def intent(session: Session, order: Order) -> Intent:
    """Say what a run will do about an order, and what that costs; nothing is sent."""
    decided = decide(session, order, session.clock.now())
    if not decided.fetched:
        return decided
    costs = plan(session, [replace(order, streams=decided.fetched)])
    return replace(decided, plan=costs)


def decide(session: Session, order: Order, now: datetime) -> Intent:
    """Return what is read already, what is to be fetched, and what can be read no more.

    What the day has a manifest of is not read again, unless the order says so; then what a killed
    run has read still is not. Only today can be read: the service has no date filter, and today's
    answer under a past day would be a lie.
    """
    ledger, may_fetch = session.ledger, _may_fetch(session, order, now)
    there = (
        days.left_behind(ledger, order.asked, since(ledger, order.connection.name, now))
        if order.refetch and may_fetch
        else days.archived(ledger, order.asked)
    )
    missing = tuple(stream for stream in order.streams if stream.name not in there)
    if may_fetch:
        return Intent(order, there, missing, ())
    return Intent(order, there, (), tuple(stream.name for stream in missing))


def _may_fetch(session: Session, order: Order, now: datetime) -> bool:
    """Tell whether today's answer may be called that day's."""
    if order.day == now.date():
        return True
    began = runs.began(session.ledger, order.run, now).date()
    begun = order.scheduled or began == order.day
    return begun and order.day < now.date() and now < closes(order.day)


def closes(day: date) -> datetime:
    """Return until when a run of a day may read under it."""
    return datetime.combine(day + timedelta(days=1), GRACE, UTC)
