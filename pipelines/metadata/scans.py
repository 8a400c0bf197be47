"""Rows of `scans`: their states and the only functions that change them."""

from collections.abc import Set as AbstractSet
from datetime import date, datetime
from enum import StrEnum

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from pipelines.core.completeness import Completeness
from pipelines.core.errors import ScanNotFound
from pipelines.metadata.runs import is_running
from pipelines.metadata.tables import Run, Scan


class ScanStatus(StrEnum):
    """State of a scan.

    OPEN is being read or can be resumed; ABANDONED will not be. SEALED waits for a build, HELD for
    a person; APPROVED was held and waits for a build. FAILED could not be loaded. REJECTED by a
    person, SUPERSEDED by a newer scan of its list. Which scans are loaded is not a status: a
    version says it itself (`meta.loads`), so that a rollback takes it back too.
    """

    OPEN = "open"
    ABANDONED = "abandoned"
    SEALED = "sealed"
    HELD = "held"
    APPROVED = "approved"
    FAILED = "failed"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


UNSEALED = (ScanStatus.OPEN, ScanStatus.ABANDONED)
WAITING = (ScanStatus.SEALED, ScanStatus.HELD, ScanStatus.APPROVED)
DECISIONS = (ScanStatus.APPROVED, ScanStatus.REJECTED)


def scan_to_resume(
    session: Session, connection: str, stream: str, not_before: datetime
) -> Scan | None:
    """Return the newest open scan of a list that began at or after a time; abandon the others.

    The caller holds the list's lock. It sets `run_id` to its own run, so that no build loads the
    scan before that run has ended.
    """
    resumed = None
    for scan in session.scalars(
        _newest_first(connection, stream).where(Scan.status == ScanStatus.OPEN)
    ):
        if resumed is None and scan.started_at >= not_before:
            resumed = scan
        else:
            scan.status, scan.reason = ScanStatus.ABANDONED, "Another scan of the list was begun."
    session.flush()
    return resumed


def get_scan(session: Session, scan_id: str) -> Scan:
    """Return a scan. Raises ScanNotFound."""
    scan = session.get(Scan, scan_id)
    if scan is None:
        raise ScanNotFound(
            f"There is no scan {scan_id}. Nothing was changed.",
            "Run `partner-sync status` to see the newest scan of each list.",
        )
    return scan


def seal_scan(session: Session, scan_id: str, proof: Completeness, sha256: str) -> Scan:
    """Mark a scan as sealed. An older scan of its list that is held is superseded."""
    scan = get_scan(session, scan_id)
    scan.status, scan.sha256 = ScanStatus.SEALED, sha256
    scan.ended_at, scan.complete = proof.ended_at, proof.complete
    scan.rows, scan.requests = proof.rows, proof.requests
    _supersede_older_held(session, scan)
    session.flush()
    return scan


def set_status(
    session: Session, scan_id: str, status: ScanStatus, reason: str | None = None
) -> ScanStatus:
    """Change the state of a scan; return the new one.

    Only a HELD scan becomes APPROVED or REJECTED. At most one scan of a list is HELD: the newest.
    Where a newer one waits for a build or a person, this one becomes SUPERSEDED instead.

    Raises:
        ScanNotFound: there is no such scan, or it is not held.
    """
    scan = get_scan(session, scan_id)
    if status in DECISIONS and scan.status != ScanStatus.HELD:
        raise ScanNotFound(
            f"Scan {scan_id} of `{scan.connection}` `{scan.stream}` is {scan.status}, not held. "
            "Nothing was changed.",
            "Run `partner-sync status` to see which scans wait for a decision.",
        )
    if status == ScanStatus.HELD:
        if newer := _newer_waiting(session, scan):
            status, reason = ScanStatus.SUPERSEDED, f"{reason} Scan {newer.scan_id} is newer."
        else:
            _supersede_older_held(session, scan)
    scan.status, scan.reason = status, reason
    session.flush()
    return status


def buildable_scans(session: Session, loaded: AbstractSet[str]) -> list[Scan]:
    """Return the scans that a build loads, in this order.

    They are the approved ones, and the sealed ones whose run has ended, however it ended; without
    those that the base holds (`loaded`). One that is older than a loaded scan of its list comes too
    late: it becomes SUPERSEDED.
    """
    scans = list(
        session.scalars(
            select(Scan).where(Scan.status.not_in(UNSEALED)).order_by(Scan.started_at, Scan.scan_id)
        )
    )
    newest = {(scan.connection, scan.stream): scan for scan in scans if scan.scan_id in loaded}
    running = {run.run_id for run in _unended_runs(session) if is_running(run)}
    buildable = []
    for scan in scans:
        last = newest.get((scan.connection, scan.stream), scan)
        if scan.scan_id in loaded or not _waits_for_build(scan, running):
            continue
        if scan.started_at < last.started_at:
            scan.status = ScanStatus.SUPERSEDED
            scan.reason = f"Scan {last.scan_id} is newer and loaded."
        else:
            buildable.append(scan)
    session.flush()
    return buildable


def held_scans(session: Session) -> list[Scan]:
    """Return the scans that wait for a person, oldest first."""
    query = select(Scan).where(Scan.status == ScanStatus.HELD)
    return list(session.scalars(query.order_by(Scan.started_at, Scan.scan_id)))


def newest_sealed(
    session: Session,
    connection: str,
    stream: str,
    *,
    not_before: datetime | None = None,
    day: date | None = None,
) -> Scan | None:
    """Return the newest scan of a list that was sealed, whatever a build or a person did with it.

    With `not_before` only one that began at or after it, with `day` only one of this UTC date.
    """
    query = _newest_first(connection, stream).where(Scan.status.not_in(UNSEALED))
    if not_before is not None:
        query = query.where(Scan.started_at >= not_before)
    if day is not None:
        query = query.where(Scan.day == day)
    return session.scalars(query.limit(1)).first()


def _newest_first(connection: str, stream: str) -> Select[Scan]:
    query = select(Scan).where(Scan.connection == connection, Scan.stream == stream)
    return query.order_by(Scan.started_at.desc(), Scan.scan_id.desc())


def _unended_runs(session: Session) -> list[Run]:
    return list(session.scalars(select(Run).where(Run.ended_at.is_(None))))


def _waits_for_build(scan: Scan, running: AbstractSet[str]) -> bool:
    if scan.status == ScanStatus.SEALED:
        return scan.run_id not in running
    return scan.status == ScanStatus.APPROVED


def _newer_waiting(session: Session, scan: Scan) -> Scan | None:
    query = _newest_first(scan.connection, scan.stream).where(Scan.status.in_(WAITING))
    return session.scalars(query.where(Scan.started_at > scan.started_at).limit(1)).first()


def _supersede_older_held(session: Session, scan: Scan) -> None:
    query = _newest_first(scan.connection, scan.stream).where(Scan.status == ScanStatus.HELD)
    for held in session.scalars(query.where(Scan.started_at < scan.started_at)):
        held.status = ScanStatus.SUPERSEDED
        held.reason = f"{held.reason} Scan {scan.scan_id} is newer."
