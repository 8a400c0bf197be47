"""Scans, their linked pages and the manifests made of them.

A page counts as read when its row here is committed, after its file is safe in the archive; a
manifest is written from these rows when the scan is over.
"""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, Engine, exists, func, insert, select, true, update

from pipelines.state.proof import Proof
from pipelines.state.tables import MANIFESTS, PAGES, SCANS


@dataclass(frozen=True)
class LinkedPage:
    """One page of a scan; `offset` and `limit` in records, as asked for."""

    position: int
    offset: int
    limit: int
    rows: int
    sha256: str
    status: int
    request_id: str | None
    sent_at: datetime
    answered_at: datetime
    rate_limit: dict[str, str]


@dataclass(frozen=True)
class Reading:
    """What a scan reads: one stream of one connection, under the day it is asked on.

    `address` is the list's: another list under the same name is another reading.
    """

    run: str
    connection: str
    stream: str
    day: date
    address: str = ""


@dataclass(frozen=True)
class ScanState:
    """How the latest scan of a stream stands, which run's it is, and its pages so far."""

    run: str
    status: str
    error: str | None
    begun_at: datetime
    pages: int


@dataclass(frozen=True)
class ManifestRow:
    """One manifest, found without opening its file; `rows` are those read, repeats included."""

    connection: str
    stream: str
    day: date
    number: int
    scan: str
    file: str
    pages: int
    rows: int
    proof: Proof
    written_at: datetime


AT_ONCE = 1000  # names in a query
ROW = [column for column in MANIFESTS.c if column.name != "sequence"]


def begin(engine: Engine, reading: Reading, now: datetime) -> str:
    """Record that a scan begins; return its identifier."""
    scan = str(uuid4())
    with engine.begin() as ledger:
        ledger.execute(
            insert(SCANS).values(
                asdict(reading) | {"scan": scan, "begun_at": now, "status": "reading"}
            )
        )
    return scan


def link(engine: Engine, scan: str, page: LinkedPage) -> None:
    """Commit that a page is part of a scan; its file is in the archive already."""
    with engine.begin() as ledger:
        ledger.execute(insert(PAGES), asdict(page) | {"scan": scan})


def unfinished(engine: Engine, reading: Reading, since: datetime) -> str | None:
    """Return the scan that this reading goes on with: killed or failed, and not older than so.

    None where there is none; what was read to an end without a proof is not read on, nor what was
    read from another address.
    """
    query = (
        select(SCANS.c.scan, SCANS.c.status, SCANS.c.address, SCANS.c.begun_at)
        .where(
            SCANS.c.connection == reading.connection,
            SCANS.c.stream == reading.stream,
            SCANS.c.day == reading.day,
        )
        .order_by(SCANS.c.begun_at.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    if row is None or row.status not in {"reading", "failed"} or row.begun_at < since:
        return None
    if row.address != reading.address:
        return None
    return str(row.scan)


def resume(engine: Engine, scan: str, run: str) -> None:
    """Record that a run goes on with a scan."""
    values = {"run": run, "status": "reading", "error": None, "ended_at": None}
    with engine.begin() as ledger:
        ledger.execute(update(SCANS).where(SCANS.c.scan == scan).values(values))


def fail(engine: Engine, scan: str, now: datetime, error: str, proof: Proof | None = None) -> None:
    """Record why a scan has no manifest; one that was read to an end (a proof) is not read on."""
    status = "failed" if proof is None else "unproven"
    values = {"status": status, "error": error, "ended_at": now, "proof": proof}
    with engine.begin() as ledger:
        ledger.execute(update(SCANS).where(SCANS.c.scan == scan).values(values))


def pages(engine: Engine, scan: str) -> tuple[LinkedPage, ...]:
    """Return a scan's linked pages in chain order."""
    columns = [column for column in PAGES.c if column.name != "scan"]
    query = select(*columns).where(PAGES.c.scan == scan).order_by(PAGES.c.position)
    with engine.connect() as ledger:
        return tuple(LinkedPage(**row) for row in ledger.execute(query).mappings())


def first_read(engine: Engine, digest: str) -> tuple[str, str, LinkedPage] | None:
    """Return the connection and stream of which a page was first read, and that reading of it."""
    columns = [column for column in PAGES.c if column.name != "scan"]
    query = (
        select(SCANS.c.connection, SCANS.c.stream, *columns)
        .join(SCANS, SCANS.c.scan == PAGES.c.scan)
        .where(PAGES.c.sha256 == digest)
        .order_by(PAGES.c.answered_at)
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else (row[0], row[1], LinkedPage(*row[2:]))


def unbound(engine: Engine, since: datetime) -> set[str]:
    """Return the pages of later readings without a manifest: under way, failed, not proven."""
    query = select(PAGES.c.sha256).join(SCANS, SCANS.c.scan == PAGES.c.scan)
    query = query.where(SCANS.c.status != "read", SCANS.c.begun_at >= since)
    with engine.connect() as ledger:
        return set(ledger.execute(query).scalars())


def latest_scan(
    engine: Engine, connection: str, stream: str, day: date | None = None
) -> ScanState | None:
    """Return how the newest scan of a stream stands, of one day where given; None for none."""
    pages = select(func.count()).where(PAGES.c.scan == SCANS.c.scan).scalar_subquery()
    query = (
        select(SCANS.c.run, SCANS.c.status, SCANS.c.error, SCANS.c.begun_at, pages)
        .where(SCANS.c.connection == connection, SCANS.c.stream == stream)
        .where(true() if day is None else SCANS.c.day == day)
        .order_by(SCANS.c.begun_at.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else ScanState(*row)


def failures(engine: Engine, since: datetime) -> dict[tuple[str, str], tuple[datetime, str]]:
    """Return when each list's newest scan began, and why it failed: of those later than `since`.

    By connection and stream; lists whose newest scan did not fail are not among them.
    """
    of, newer = SCANS.c, SCANS.alias().c
    same = newer.connection == of.connection, newer.stream == of.stream
    query = select(of.connection, of.stream, of.begun_at, of.error).where(
        of.error.is_not(None),
        of.begun_at > since,
        ~exists().where(*same, newer.begun_at > of.begun_at),
    )
    with engine.connect() as ledger:
        return {(row[0], row[1]): (row[2], row[3]) for row in ledger.execute(query)}


def next_number(engine: Engine, reading: Reading) -> int:
    """Return the number of the next manifest of a stream and day, from 1."""
    query = select(func.max(MANIFESTS.c.number)).where(
        MANIFESTS.c.connection == reading.connection,
        MANIFESTS.c.stream == reading.stream,
        MANIFESTS.c.day == reading.day,
    )
    with engine.connect() as ledger:
        return (ledger.execute(query).scalar() or 0) + 1


def add_manifest(engine: Engine, manifest: ManifestRow) -> None:
    """Record a manifest whose file is in the archive, and that its scan is read, in one step."""
    proof, written = manifest.proof, manifest.written_at
    read = {"status": "read", "error": None, "ended_at": written, "proof": proof}
    with engine.begin() as ledger:
        ledger.execute(insert(MANIFESTS).values(asdict(manifest) | {"proof": proof}))
        ledger.execute(update(SCANS).where(SCANS.c.scan == manifest.scan).values(read))


def manifests(
    engine: Engine, stream: str, connection: str | None = None, day: date | None = None
) -> tuple[ManifestRow, ...]:
    """Return a stream's manifests as they were written; of one connection or day where given."""
    wanted = {MANIFESTS.c.connection: connection, MANIFESTS.c.day: day}
    narrower = (column == value for column, value in wanted.items() if value is not None)
    return _manifests(engine, MANIFESTS.c.stream == stream, *narrower)


def manifests_of(
    engine: Engine, stream: str, connections: Collection[str]
) -> tuple[ManifestRow, ...]:
    """Return a stream's manifests of some connections as they were written."""
    of = MANIFESTS.c.connection.in_(connections)
    return _manifests(engine, MANIFESTS.c.stream == stream, of)


def named(engine: Engine, files: Iterable[str]) -> tuple[ManifestRow, ...]:
    """Return the manifests of some files, in any order."""
    every = list(files)
    parts = (every[first : first + AT_ONCE] for first in range(0, len(every), AT_ONCE))
    return tuple(row for part in parts for row in _manifests(engine, MANIFESTS.c.file.in_(part)))


def every_manifest(engine: Engine) -> tuple[ManifestRow, ...]:
    """Return all manifests as they were written."""
    return _manifests(engine)


def _manifests(engine: Engine, *conditions: ColumnElement[bool]) -> tuple[ManifestRow, ...]:
    query = select(*ROW).where(true(), *conditions).order_by(MANIFESTS.c.sequence)
    with engine.connect() as ledger:
        return tuple(ManifestRow(**row) for row in ledger.execute(query).mappings())


def read_once(engine: Engine) -> set[tuple[str, str]]:
    """Return connection and stream of everything that was ever read to its end."""
    query = select(MANIFESTS.c.connection, MANIFESTS.c.stream).distinct()
    with engine.connect() as ledger:
        return {(connection, stream) for connection, stream in ledger.execute(query)}


def begun(engine: Engine) -> set[tuple[str, str]]:
    """Return connection and stream of everything of which a reading ever began."""
    query = select(SCANS.c.connection, SCANS.c.stream).distinct()
    with engine.connect() as ledger:
        return {(connection, stream) for connection, stream in ledger.execute(query)}


def newest(engine: Engine, stream: str, connection: str) -> ManifestRow | None:
    """Return the last manifest of a stream, None where it was never read to its end."""
    query = select(*ROW).where(MANIFESTS.c.stream == stream, MANIFESTS.c.connection == connection)
    with engine.connect() as ledger:
        found = ledger.execute(query.order_by(MANIFESTS.c.sequence.desc()).limit(1)).mappings()
        row = found.first()
    return None if row is None else ManifestRow(**row)
