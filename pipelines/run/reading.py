"""The first links: token, budget, client, page chain, archive, journal, manifest.

Here: which lists are read, and that they are read side by side. Not here: how a list is read.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from functools import partial

from sqlalchemy import Engine

from pipelines import streams
from pipelines.api import chain, client, key, preflight
from pipelines.api.client import Client
from pipelines.api.preflight import Report
from pipelines.api.terms import Seat
from pipelines.errors import PartnerSyncError
from pipelines.run import interface
from pipelines.run.order import Order, Read
from pipelines.run.session import Session
from pipelines.settings import Connection
from pipelines.state import days, runs
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.runs import Call
from pipelines.streams.base import Stream
from pipelines.warehouse.scan import Scanner

# A run of day D may read under D until this time of the next day, UTC: a night that began late
# or waited long is still that night.
GRACE = time(12)
AGAIN = 30.0  # seconds until the same reason to wait is told again


def fetch(session: Session, order: Order) -> Read:
    """Read the streams side by side, one budget for all; return manifest or failure of each.

    What the day has a manifest of is not read again, unless the order says so. Only today can be
    read: the service has no date filter, and today's answer under a past day would be a lie.
    """
    return asyncio.run(_fetch(session, order))


def fetch_all(session: Session, orders: Sequence[Order]) -> list[Read]:
    """Read several connections side by side, each on its own budget."""

    async def together() -> list[Read]:
        return await asyncio.gather(*(_fetch(session, order) for order in orders))

    return asyncio.run(together())


async def _fetch(session: Session, order: Order) -> Read:
    now = session.clock.now()
    runs.begin(session.ledger, order.run, order.connection.name, order.day, now)
    there = {} if order.refetch else days.archived(session.ledger, order.asked)
    missing = [stream for stream in order.streams if stream.name not in there]
    if not _may_fetch(session, order, now):
        return {**there, **{each.name: days.unread(each.name, order.day) for each in missing}}
    if not missing:
        return there
    return {**there, **await _scans(session, replace(order, streams=missing))}


def _may_fetch(session: Session, order: Order, now: datetime) -> bool:
    """Tell whether today's answer may be called that day's."""
    if order.day == now.date():
        return True
    begun = order.scheduled or runs.begun_at(session.ledger, order.run).date() == order.day
    until = datetime.combine(order.day + timedelta(days=1), GRACE, UTC)
    return begun and order.day < now.date() and now < until


async def _scans(session: Session, order: Order) -> dict[str, ManifestRow | PartnerSyncError]:
    record = partial(_record, session.ledger, order.run)
    settings, clock = session.settings, session.clock
    async with client.connect(
        order.connection, settings, clock, record, _seat(session, order)
    ) as service:
        found = await interface.look(session, service, order.connection)
        described = interface.described(session, order.streams, found)
        async with asyncio.TaskGroup() as group:
            tasks = {
                stream.name: group.create_task(_scan(session, service, stream, order))
                for stream in described
            }
    return {name: task.result() for name, task in tasks.items()}


def _seat(session: Session, order: Order) -> Seat:
    """Return this run's place among all that share an actor's budget; it tells each wait once."""
    tell, monotonic = session.watch.waiting, session.clock.monotonic
    told: dict[str, float] = {}

    def waiting(until: datetime | None, why: str) -> None:
        if why and monotonic() >= told.get(why, float("-inf")) + AGAIN:
            told[why] = monotonic()
            tell(f"waiting until {until:%H:%M:%S} UTC ({why})" if until else f"waiting for {why}")

    return Seat(session.ledger, order.lane, waiting, tell)


async def _record(ledger: Engine, run: str, call: Call) -> None:
    await asyncio.to_thread(runs.record, ledger, run, call)


async def _scan(
    session: Session, service: Client, stream: Stream, order: Order
) -> ManifestRow | PartnerSyncError:
    """Read one list; a failure is returned, so that the other streams go on."""
    connection = order.connection.name
    reading = Reading(order.run, connection, stream.name, order.day)
    scanner = Scanner(session.ledger, session.archive, session.clock, session.watch.progress)
    pages = chain.walk(partial(service.page, stream))
    try:
        search = key.search(session.ledger, session.settings, connection, stream)
        return await scanner.scan(reading, pages, search)
    except PartnerSyncError as error:
        return error


def check(session: Session, connection: Connection) -> Report:
    """Ask who we are and for one record of each stream; nothing is archived."""
    order = Order(connection, session.clock.now().date(), streams.known(session.settings))
    return asyncio.run(_check(session, order))


async def _check(session: Session, order: Order) -> Report:
    record = partial(_record, session.ledger, order.run)
    settings, clock = session.settings, session.clock
    seat = _seat(session, order)
    async with client.connect(order.connection, settings, clock, record, seat) as service:
        return await preflight.ask(service, order.streams)
