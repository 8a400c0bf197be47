"""One sync, the whole chain on one page, one function per link.

fetch     token, budget, client, page chain, archive, journal, manifest
fold      typed tables in the work database
publish   the file that analysts open
sync      all three, for today
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TypeVar
from uuid import uuid4

import duckdb
from sqlalchemy import Engine

from pipelines.api import chain, client, key, preflight
from pipelines.api.client import Client
from pipelines.api.preflight import Report
from pipelines.clock import SYSTEM, Clock
from pipelines.errors import LandingFailed, PartnerSyncError
from pipelines.settings import Connection, Settings
from pipelines.state import database, days, journal, runs
from pipelines.state.days import Day
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.runs import Call, Effort
from pipelines.state.versions import Version
from pipelines.streams import STREAMS
from pipelines.streams.base import Stream
from pipelines.warehouse import fold as folding
from pipelines.warehouse import meta
from pipelines.warehouse import publish as publishing
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import Work
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.scan import Progress, Scanner


def _silent(_news: object) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Watch:
    """Who is told while it runs: pages as they are read, and reasons to wait."""

    progress: Callable[[Progress], None] = _silent
    waiting: Callable[[str], None] = _silent


T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """Everything one run works with."""

    settings: Settings
    connection: Connection
    ledger: Engine
    archive: Archive
    work: Work
    clock: Clock
    watch: Watch


@dataclass(frozen=True)
class Order:
    """What a run is to do: which streams of which day, under which run's name.

    `refetch` reads a list again though the day has a manifest of it already.
    """

    day: date
    streams: Sequence[Stream] = STREAMS
    refetch: bool = False
    run: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True)
class StreamOutcome:
    """What became of one stream: what was read and folded of it, what it cost, what failed."""

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

    run: str
    streams: tuple[StreamOutcome, ...]
    version: Version | None

    @property
    def exit_code(self) -> int:
        """Return 0 for all published, 1 for nothing, 3 for published though a stream failed."""
        if self.version is None:
            return 1
        return 3 if any(each.error for each in self.streams) else 0


Read = Mapping[str, ManifestRow | PartnerSyncError]
Folded = Mapping[str, Fold | PartnerSyncError]


@contextmanager
def open(settings: Settings, watch: Watch = Watch(), clock: Clock = SYSTEM) -> Iterator[Session]:  # noqa: A001
    """Yield a session on the settings' home; files made in it are its owner's alone."""
    connection, home = settings.connection(), settings.place
    home.prepare()
    mask = os.umask(0o077)  # DuckDB and SQLite would make theirs readable to all
    try:
        ledger = database.connect(home.state)
        try:
            work = Work(home, settings.memory_limit, watch.waiting)
            yield Session(settings, connection, ledger, Archive(home.archive), work, clock, watch)
        finally:
            ledger.dispose()
    finally:
        os.umask(mask)


def sync(session: Session, streams: Sequence[Stream] = STREAMS) -> Outcome:
    """Read today's lists again, fold and publish them; what failed is in the outcome."""
    order = Order(session.clock.now().date(), streams, refetch=True)
    read = fetch(session, order)
    folded = fold(session, order)
    efforts = runs.efforts(session.ledger, order.run)
    outcomes = tuple(
        StreamOutcome(
            name,
            _or_none(ManifestRow, read.get(name)),
            _or_none(Fold, folded[name]),
            efforts.get(name, Effort()),
            _or_none(PartnerSyncError, read.get(name)) or _or_none(PartnerSyncError, folded[name]),
        )
        for name in folded
    )
    if all(each.error for each in outcomes):
        runs.end(session.ledger, order.run, "failed", session.clock.now())
        return Outcome(order.run, outcomes, None)
    return Outcome(order.run, outcomes, publish(session, [order]).version)


def fetch(session: Session, order: Order) -> Read:
    """Read the streams side by side, one budget for all; return manifest or failure of each.

    What the day has a manifest of is not read again, unless the order says so. Only today can be
    read: the service has no date filter, and today's answer under a past day would be a lie.
    """
    now = session.clock.now()
    runs.begin(session.ledger, order.run, session.connection.name, order.day, now)
    there = {} if order.refetch else days.archived(session.ledger, _day(session, order))
    missing = [stream for stream in order.streams if stream.name not in there]
    if order.day != now.date():
        return {**there, **{each.name: days.unread(each.name, order.day) for each in missing}}
    if not missing:
        return there
    return {**there, **asyncio.run(_fetch(session, replace(order, streams=missing)))}


def _day(session: Session, order: Order) -> Day:
    names = tuple(stream.name for stream in order.streams)
    return Day(order.run, session.connection.name, order.day, names)


async def _fetch(session: Session, order: Order) -> dict[str, ManifestRow | PartnerSyncError]:
    record = partial(_record, session.ledger, order.run)
    settings, clock = session.settings, session.clock
    async with (
        client.connect(session.connection, settings, clock, record) as service,
        asyncio.TaskGroup() as group,
    ):
        tasks = {
            stream.name: group.create_task(_scan(session, service, stream, order))
            for stream in order.streams
        }
    return {name: task.result() for name, task in tasks.items()}


async def _record(ledger: Engine, run: str, call: Call) -> None:
    await asyncio.to_thread(runs.record, ledger, run, call)


async def _scan(
    session: Session, service: Client, stream: Stream, order: Order
) -> ManifestRow | PartnerSyncError:
    """Read one list; a failure is returned, so that the other streams go on."""
    reading = Reading(order.run, session.connection.name, stream.name, order.day)
    scanner = Scanner(session.ledger, session.archive, session.clock, session.watch.progress)
    pages = chain.walk(partial(service.page, stream))
    try:
        search = key.search(session.ledger, session.settings, session.connection.name, stream)
        return await scanner.scan(reading, pages, search)
    except PartnerSyncError as error:
        return error


def check(session: Session) -> Report:
    """Ask who we are and for one record of each stream; nothing is archived."""
    order = Order(session.clock.now().date())
    return asyncio.run(_check(session, order))


async def _check(session: Session, order: Order) -> Report:
    record = partial(_record, session.ledger, order.run)
    settings, clock = session.settings, session.clock
    async with client.connect(session.connection, settings, clock, record) as service:
        return await preflight.ask(service, order.streams)


def fold(session: Session, order: Order) -> Folded:
    """Fold the newest manifest of each stream that is not folded yet; return fold or failure.

    Streams that the order does not name are folded too where the work database lost them.
    """
    wanted = {stream.name for stream in order.streams}
    with session.work.writing() as writer:
        held = meta.held(writer)
        lost = {name for name in _read_once(session) if (session.connection.name, name) not in held}
        folded = {
            name: _fold(session, writer, name, held.get((session.connection.name, name)))
            for name in sorted(wanted | lost)
        }
    failed = {name for name, each in folded.items() if isinstance(each, PartnerSyncError)}
    return {name: each for name, each in folded.items() if name in wanted | failed}


def _read_once(session: Session) -> set[str]:
    """Return the streams that were ever read to their end."""
    ledger, connection = session.ledger, session.connection.name
    return {each.name for each in STREAMS if journal.manifests(ledger, each.name, connection)}


def _fold(
    session: Session, writer: duckdb.DuckDBPyConnection, stream: str, there: Fold | None
) -> Fold | PartnerSyncError:
    """Fold one stream; a failure is returned, so that the other streams are published."""
    manifests = journal.manifests(session.ledger, stream, session.connection.name)
    if not manifests:
        return LandingFailed(f"{stream} was never read to its end")
    newest = manifests[-1]
    if there is not None and there.manifest == newest.file:
        return there
    emptied = there is not None and there.rows and not newest.rows
    if emptied and not session.settings.stream(stream).may_be_empty:
        return LandingFailed(
            f"{stream}: the service answered an empty list where rows were. They stay published; "
            f"if it is true, set may_be_empty = true in [streams.{stream}]."
        )
    archive, ledger, clock = session.archive, session.ledger, session.clock
    try:
        return folding.fold(writer, archive, ledger, archive.read(newest.file), clock)
    except PartnerSyncError as error:
        return error


def publish(session: Session, orders: Sequence[Order]) -> Publication:
    """Publish what is folded, all streams at once; say what the orders' days lack in it."""
    run, keep = orders[0].run, session.settings.keep_versions
    version = publishing.publish(session.work, session.ledger, run, keep, session.clock)
    holds = version.holds if version else {}
    asked = [_day(session, order) for order in orders]
    lacking = tuple(days.lacking(session.ledger, day, holds) for day in asked)
    outcome = "partial" if any(lacking) else "published"
    runs.end(session.ledger, run, outcome, session.clock.now())
    return Publication(version, lacking)


def _or_none(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None
