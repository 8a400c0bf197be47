"""One sync, the whole chain on one page, one function per link.

fetch     token, budget, client, page chain, archive, journal, manifest     reading.py
fold      typed tables in the work database                                 landing.py
publish   the file that analysts open                                       landing.py
sync      all three, for today
"""

from collections.abc import Sequence

from pipelines.run.landing import fold, publish
from pipelines.run.order import Lane, Order, Outcome, Publication, StreamOutcome, outcomes
from pipelines.run.reading import check, fetch, fetch_all
from pipelines.run.session import Session, Watch, open  # noqa: A004
from pipelines.state import runs
from pipelines.streams import known
from pipelines.streams.base import Stream

__all__ = [
    "Lane",
    "Order",
    "Outcome",
    "Publication",
    "Session",
    "StreamOutcome",
    "Watch",
    "check",
    "fetch",
    "fold",
    "open",
    "publish",
    "sync",
    "today",
]


def today(
    session: Session, streams: Sequence[Stream] | None = None, *, lane: Lane = Lane.ADHOC
) -> Order:
    """Return the order to read lists again today, on the connection `default`; all unless named."""
    day = session.clock.now().date()
    every = known(session.settings) if streams is None else streams
    return Order(session.settings.connection(), day, every, refetch=True, lane=lane)


def sync(session: Session, orders: Sequence[Order]) -> Outcome:
    """Read each order's lists, fold and publish them; what failed is in the outcome."""
    everything: list[StreamOutcome] = []
    for order, read in zip(orders, fetch_all(session, orders), strict=True):
        folded = fold(session, order)
        efforts = runs.efforts(session.ledger, order.run)
        everything += outcomes(order, read, folded, efforts)
    if all(each.error for each in everything):
        for order in orders:
            runs.end(session.ledger, order.run, "failed", session.clock.now())
        return Outcome(tuple(everything), None)
    return Outcome(tuple(everything), publish(session, orders).version)
