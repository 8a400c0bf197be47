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
from uuid import uuid4

import duckdb
from sqlalchemy import Engine

from pipelines.api import chain, client, key, preflight
from pipelines.api.client import Client
from pipelines.api.preflight import Report
from pipelines.clock import SYSTEM, Clock
from pipelines.errors import DayUnread, LandingFailed, PartnerSyncError
from pipelines.settings import Connection, Settings
from pipelines.state import database, journal, runs, versions
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.runs import Call, Effort
from pipelines.state.versions import Fold, Version
from pipelines.streams import STREAMS
from pipelines.streams.base import Stream
from pipelines.warehouse import fold as folding
from pipelines.warehouse import publish as publishing
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import Work
from pipelines.warehouse.scan import Progress, Scanner


def _silent(_news: object) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Watch:
    """Who is told while it runs: pages as they are read, and reasons to wait."""

    progress: Callable[[Progress], None] = _silent
    waiting: Callable[[str], None] = _silent


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
    """What became of one stream: its manifest where it was read, what it cost, what failed."""

    stream: str
    manifest: ManifestRow | None
    effort: Effort
    error: PartnerSyncError | None


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
    version = publish(session, order)
    efforts = runs.efforts(session.ledger, order.run)
    outcome = Outcome(
        order.run,
        tuple(
            StreamOutcome(
                name,
                manifest if isinstance(manifest, ManifestRow) else None,
                efforts.get(name, Effort()),
                _first_error(manifest, folded[name]),
            )
            for name, manifest in read.items()
        ),
        version,
    )
    ends = {0: "published", 1: "failed", 3: "partial"}
    runs.end(session.ledger, order.run, ends[outcome.exit_code], session.clock.now())
    return outcome


def fetch(session: Session, order: Order) -> Read:
    """Read the streams side by side, one budget for all; return manifest or failure of each.

    What the day has a manifest of is not read again, unless the order says so. Only today can be
    read: the service has no date filter, and today's answer under a past day would be a lie.
    """
    now = session.clock.now()
    runs.begin(session.ledger, order.run, session.connection.name, order.day, now)
    found = {} if order.refetch else _archived(session, order)
    missing = [stream for stream in order.streams if stream.name not in found]
    if order.day != now.date():
        return found | {stream.name: _unread(stream, order.day) for stream in missing}
    if not missing:
        return found
    return found | asyncio.run(_fetch(session, replace(order, streams=missing)))


def _archived(session: Session, order: Order) -> dict[str, ManifestRow | PartnerSyncError]:
    names = [stream.name for stream in order.streams]
    ledger, connection = session.ledger, session.connection.name
    days = {name: journal.manifests(ledger, name, connection, order.day) for name in names}
    return {name: manifests[-1] for name, manifests in days.items() if manifests}


def _unread(stream: Stream, day: date) -> DayUnread:
    return DayUnread(
        f"{stream.name} was not read on {day}, and the service tells only what is today: that day "
        "stays unknown. Choose days that were read, or today."
    )


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
    """Fold the newest manifest of each stream that is not folded yet; return fold or failure."""
    with session.work.writing() as writer:
        held = {(each.connection, each.stream): each for each in versions.folds(session.ledger)}
        folded: dict[str, Fold | PartnerSyncError] = {}
        for stream in order.streams:
            name, connection = stream.name, session.connection.name
            manifests = journal.manifests(session.ledger, name, connection)
            there = held.get((connection, name))
            if not manifests:
                folded[name] = LandingFailed(f"{name} was never read to its end")
            elif there is not None and there.manifest == manifests[-1].file:
                folded[name] = there
            else:
                folded[name] = _fold(session, writer, manifests[-1])
    return folded


def _fold(
    session: Session, writer: duckdb.DuckDBPyConnection, manifest: ManifestRow
) -> Fold | PartnerSyncError:
    """Fold one manifest; a failure is returned, so that the other streams are published."""
    try:
        return folding.fold(
            writer,
            session.archive,
            session.ledger,
            session.archive.read(manifest.file),
            session.clock,
        )
    except PartnerSyncError as error:
        return error


def shortfalls(session: Session, order: Order) -> tuple[str, ...]:
    """Return in words what the order's day still lacks after fetch and fold; empty for nothing."""
    held = {
        (each.connection, each.stream): each.manifest for each in versions.folds(session.ledger)
    }
    archived = _archived(session, order)
    ledger, connection = session.ledger, session.connection.name
    words = []
    for stream in order.streams:
        newest = journal.manifests(ledger, stream.name, connection)[-1:]
        if stream.name not in archived:
            scan = journal.latest_scan(ledger, connection, stream.name, order.day)
            words.append(scan.error if scan and scan.error else str(_unread(stream, order.day)))
        elif newest and held.get((connection, stream.name)) != newest[0].file:
            words.append(f"{stream.name}: {newest[0].file} could not be folded (see that step)")
    return tuple(words)


def publish(session: Session, order: Order) -> Version | None:
    """Publish what is folded, all streams at once; None where all of it is published already."""
    last = versions.published_at(session.ledger)
    folds = versions.folds(session.ledger)
    if not any(last is None or fold.folded_at > last for fold in folds):
        return None
    keep = session.settings.keep_versions
    return publishing.publish(session.work, session.ledger, order.run, keep, session.clock)


def _first_error(*results: object) -> PartnerSyncError | None:
    return next((each for each in results if isinstance(each, PartnerSyncError)), None)
