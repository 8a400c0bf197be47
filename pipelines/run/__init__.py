"""One sync, the whole chain on one page, one function per link.

fetch     token, budget, client, page chain, archive, journal, manifest     reading.py
fold      typed tables in the work database                                 landing.py
publish   the file that analysts open                                       landing.py
sync      all three, for today
alert     what people are told of without asking                            alerting.py
"""

from collections.abc import Collection, Sequence
from contextlib import suppress

from pipelines.api.lanes import Lane
from pipelines.errors import ConfigurationError, PartnerSyncError
from pipelines.run.accepting import Word, accept_waiting, columns, set_aside, waiting
from pipelines.run.admission import Standing, accept, check, standings, test
from pipelines.run.alerting import alert, alerted, catch_up, fail, try_targets
from pipelines.run.breaking import Break, Chosen, broken
from pipelines.run.breaking import decide as decide_break
from pipelines.run.breaking import totals as break_totals
from pipelines.run.breaking import trail as break_trail
from pipelines.run.closing import Signing, close_month, closed_months, reopen_month
from pipelines.run.discovery import discover
from pipelines.run.erasure import Act, Sought, erase
from pipelines.run.evidence import Evidence, Landing, evidence, lost
from pipelines.run.explaining import explain
from pipelines.run.explanation import Explanation
from pipelines.run.forecast import plan
from pipelines.run.freshness import Freshness, freshness
from pipelines.run.intent import Intent, closes, intent
from pipelines.run.interface import changed, differing
from pipelines.run.keeping import Checked, verify
from pipelines.run.landing import fold, publish, publish_folded, roll_back
from pipelines.run.mapping import Accepted, Proposed, accept_mapping, needing, propose
from pipelines.run.order import Choice, Order, Outcome, Publication, StreamOutcome, outcomes
from pipelines.run.reading import fetch, fetch_all
from pipelines.run.reconciling import Judged, judged
from pipelines.run.replay import Replayed, again, fold_days, replay
from pipelines.run.reporting import ReportPage, ReportView, report, report_views
from pipelines.run.retaining import retain
from pipelines.run.session import Session, Watch, open  # noqa: A004
from pipelines.run.standing import status
from pipelines.state import runs
from pipelines.streams import known

__all__ = [
    "Accepted",
    "Act",
    "Break",
    "Checked",
    "Choice",
    "Chosen",
    "Evidence",
    "Explanation",
    "Freshness",
    "Intent",
    "Judged",
    "Landing",
    "Lane",
    "Order",
    "Outcome",
    "Proposed",
    "Publication",
    "Replayed",
    "ReportPage",
    "ReportView",
    "Session",
    "Signing",
    "Sought",
    "Standing",
    "StreamOutcome",
    "Watch",
    "Word",
    "accept",
    "accept_mapping",
    "accept_waiting",
    "again",
    "alert",
    "alerted",
    "break_totals",
    "break_trail",
    "broken",
    "catch_up",
    "changed",
    "check",
    "close_month",
    "closed_months",
    "closes",
    "columns",
    "decide_break",
    "differing",
    "discover",
    "erase",
    "evidence",
    "explain",
    "fail",
    "fetch",
    "fold",
    "fold_days",
    "freshness",
    "intent",
    "judged",
    "lost",
    "needing",
    "open",
    "orders",
    "plan",
    "propose",
    "publish",
    "publish_folded",
    "reopen_month",
    "replay",
    "report",
    "report_views",
    "retain",
    "roll_back",
    "set_aside",
    "standings",
    "status",
    "sync",
    "test",
    "try_targets",
    "verify",
    "waiting",
]


EVERYTHING = Choice()


def orders(session: Session, choice: Choice = EVERYTHING) -> list[Order]:
    """Return an order to read today's lists again for each connection chosen.

    Raises ConfigurationError for a connection or stream that is not known, and where the choice
    leaves nothing to read.
    """
    connections = session.settings.connections()
    own = known(session.settings)
    names = _named("connection", choice.connections, connections)
    streams = _named("stream", choice.streams, [stream.name for stream in own])
    day = session.clock.now().date()
    given = [
        Order(
            of,
            day,
            [each for each in own if each.name in streams and each.surface == of.surface],
            refetch=True,
            lane=choice.lane,
        )
        for name, of in connections.items()
        if name in names
    ]
    if not any(order.streams for order in given):
        raise ConfigurationError("the connections chosen have none of the streams chosen")
    return [order for order in given if order.streams]


def _named(what: str, names: Sequence[str], known: Collection[str]) -> set[str]:
    """Return the names chosen, all where none is; refuse one that nobody knows."""
    for name in names:
        if name not in known:
            raise ConfigurationError(f"no {what} {name!r}; there are {', '.join(known)}")
    return set(names or known)


def sync(session: Session, orders: Sequence[Order]) -> Outcome:
    """Read each order's lists, fold and publish them; what failed is in the outcome."""
    try:
        return _synced(session, orders)
    except BaseException as error:
        _end(session, orders, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
        raise


def _synced(session: Session, orders: Sequence[Order]) -> Outcome:
    everything: list[StreamOutcome] = []
    for order, read in zip(orders, fetch_all(session, orders), strict=True):
        folded = fold(session, order)
        efforts = runs.efforts(session.ledger, order.run)
        everything += outcomes(order, read, folded, efforts)
    if all(each.error for each in everything):
        _end(session, orders, "failed")
        with suppress(PartnerSyncError):  # what failed first is what is told
            publish_folded(session)  # the same rows, with the doubt that there is of them now
        return Outcome(tuple(everything), None)
    return Outcome(tuple(everything), publish(session, orders).version)


def _end(session: Session, orders: Sequence[Order], outcome: str) -> None:
    for order in orders:
        runs.end(session.ledger, order.run, outcome, session.clock.now())
