"""Rows of `scans`: their states, and the only functions that change them."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from contextlib import closing
from datetime import date, datetime, timedelta
from enum import StrEnum

import msgspec
from sqlalchemy import ScalarResult, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from pipelines.core.proof import Completeness, ListTraits
from pipelines.metadata.runs import is_running
from pipelines.metadata.tables import Run, Scan


class ScanStatus(StrEnum):
    """State of a scan.

    OPEN is being read or can be resumed; ABANDONED will not be. SEALED waits for a build, HELD for
    a person; APPROVED was held and waits for a build. FAILED could not be loaded. REJECTED by a
    person. PRUNED was loaded, and its file is deleted. Which scans are loaded is not a status: a
    version says it itself (`meta.loads`), so that a rollback takes it back too. Nor is there a
    status for a scan that a newer one of its list has replaced.
    """

    OPEN = "open"
    ABANDONED = "abandoned"
    SEALED = "sealed"
    HELD = "held"
    APPROVED = "approved"
    FAILED = "failed"
    REJECTED = "rejected"
    PRUNED = "pruned"


BUILDABLE = (ScanStatus.SEALED, ScanStatus.APPROVED)
UNSEALED = (ScanStatus.OPEN, ScanStatus.ABANDONED)
SEALED = set(ScanStatus).difference(UNSEALED, [ScanStatus.PRUNED])
SET_ASIDE = (ScanStatus.HELD, ScanStatus.REJECTED)  # no build loads them
# Rows that are fetched at once. Most callers need the first ones, and each night adds some.
FEW = 20
TRUSTED = (*BUILDABLE, ScanStatus.FAILED, ScanStatus.PRUNED)


def scan_to_resume(
    session: Session, connection: str, stream: str, not_before: datetime
) -> Scan | None:
    """Return the newest open scan of a list that began at or after a time; abandon the others.

    The caller holds the list's lock. It sets `run_id` to its own run, so that no build loads the
    scan before that run has ended.
    """
    resumed = None
    for scan in _select(session, [ScanStatus.OPEN], connection=connection, stream=stream):
        if resumed is None and scan.started_at >= not_before:
            resumed = scan
        else:
            scan.status = ScanStatus.ABANDONED
            scan.reason = "Another scan of the list was begun."
    return resumed


def redate_scans(session: Session, now: datetime, connection: str) -> None:
    """Move scans that began later than `now` before it; an open one is not resumed.

    Their clock was ahead, or the clock was set back since. Their files keep their times, and
    `ended_at` stays. The caller holds the lock of the connection.
    """
    future = select(Scan).filter_by(connection=connection).where(Scan.started_at >= now)
    newest_first = future.order_by(Scan.started_at.desc(), Scan.scan_id.desc())
    for place, scan in enumerate(session.scalars(newest_first).all(), 1):
        # A resumed scan would have times of two clocks.
        if scan.status == ScanStatus.OPEN:
            began = f"{scan.started_at:%Y-%m-%d %H:%M:%S} UTC"
            scan.status = ScanStatus.ABANDONED
            scan.reason = f"By a clock ahead, it began at {began}."
        scan.started_at = now - place * timedelta.resolution


def newest_start(session: Session) -> datetime | None:
    """Return when the newest sealed scan of all lists began."""
    sealed = SEALED.union([ScanStatus.PRUNED])
    return session.scalar(select(func.max(Scan.started_at)).where(Scan.status.in_(sealed)))


def list_traits(session: Session, connection: str, stream: str) -> ListTraits:
    """Return what the newest scan says of its list; the default where there is none.

    One that a person rejected or has not approved yet may have the wrong key: it says nothing.
    """
    scan = _select(session, TRUSTED, connection=connection, stream=stream).first()
    if scan is None:
        return ListTraits()
    return msgspec.convert(scan.traits, ListTraits)


def seal_scan(session: Session, scan_id: str, proof: Completeness, sha256: str) -> None:
    """Mark a scan as sealed and keep what it says of its list."""
    scan = session.get_one(Scan, scan_id)
    scan.sha256 = sha256
    scan.traits = msgspec.to_builtins(proof.traits)
    scan.ended_at = proof.ended_at
    scan.complete = proof.complete
    scan.rows = proof.rows
    scan.requests = proof.requests
    scan.status = ScanStatus.SEALED


def set_status(
    session: Session, scan_id: str, status: ScanStatus, reason: str | None = None
) -> None:
    """Change the state of a scan."""
    scan = session.get_one(Scan, scan_id)
    scan.status = status
    scan.reason = reason


def buildable_scans(session: Session, loaded: AbstractSet[str]) -> list[Scan]:
    """Return the scans that a build takes, in the order in which they began.

    These are approved scans, and sealed ones whose run has ended, however it ended; without those
    that the base holds (`loaded`), and those that are older than a loaded scan of their list.
    """
    unended = session.scalars(select(Run).where(Run.ended_at.is_(None)))
    running = {run.run_id for run in unended if is_running(session, run)}
    # One list at a time, and only until a loaded scan: their number grows with every night.
    lists = session.execute(select(Scan.connection, Scan.stream).distinct()).all()
    buildable = list[Scan]()
    for connection, stream in lists:
        scans = _select(session, tuple(ScanStatus), connection=connection, stream=stream)
        with closing(scans):
            for scan in scans:
                if scan.scan_id in loaded:
                    break  # an older scan would bring rows back
                waits = scan.status == ScanStatus.SEALED and scan.run_id in running
                if scan.status in BUILDABLE and not waits:
                    buildable.append(scan)
    return sorted(buildable, key=lambda scan: (scan.started_at, scan.scan_id))


def prunable_scans(session: Session, loaded: AbstractSet[str], before: datetime) -> list[Scan]:
    """Return scans that began before a time and are loaded, or never will be; oldest first.

    The newest sealed scan of a list is not among them: it says what the next one should know.
    """
    described_lists = set[tuple[str, str]]()  # by a newer sealed scan
    passed_lists = set[tuple[str, str]]()  # of which this scan or a newer one is loaded
    prunable = list[Scan]()
    for scan in _select(session, tuple(ScanStatus)):
        list_name = (scan.connection, scan.stream)
        is_sealed = scan.status in SEALED
        if scan.scan_id in loaded:
            passed_lists.add(list_name)
        is_given_up = scan.status in {ScanStatus.ABANDONED, ScanStatus.REJECTED}
        is_over = is_given_up or (is_sealed and list_name in passed_lists)
        is_needed = scan.sha256 is not None and list_name not in described_lists
        if scan.started_at < before and is_over and not is_needed:
            prunable.append(scan)
        if is_sealed:
            described_lists.add(list_name)
    return prunable[::-1]


def held_scans(session: Session) -> list[Scan]:
    """Return the scans that wait for a person, oldest first: at most the newest of each list."""
    # A held scan that a newer one has replaced waits for nobody, though its status stays.
    newer = aliased(Scan)
    is_newer = or_(
        newer.started_at > Scan.started_at,
        and_(newer.started_at == Scan.started_at, newer.scan_id > Scan.scan_id),
    )
    is_replaced = exists().where(
        newer.connection == Scan.connection,
        newer.stream == Scan.stream,
        newer.status.in_(SEALED.union([ScanStatus.PRUNED]) - {ScanStatus.FAILED}),
        is_newer,
    )
    held = select(Scan).where(Scan.status == ScanStatus.HELD, ~is_replaced)
    return list(session.scalars(held.order_by(Scan.started_at, Scan.scan_id)))


def newest_sealed(
    session: Session, connection: str, stream: str, day: date | None = None
) -> Scan | None:
    """Return the newest scan of a list (of a UTC date) that was sealed, whatever became of it."""
    of_day = {"day": day} if day else {}
    return _select(session, SEALED, connection=connection, stream=stream, **of_day).first()


def _select(
    session: Session, statuses: Collection[ScanStatus], **where: object
) -> ScalarResult[Scan]:
    """Return the scans in some states and with some values, newest first."""
    query = select(Scan).filter_by(**where).where(Scan.status.in_(statuses))
    query = query.order_by(Scan.started_at.desc(), Scan.scan_id.desc())
    return session.scalars(query.execution_options(yield_per=FEW))
