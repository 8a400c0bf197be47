"""Runs, scans and proofs for tests of the metadata database."""

from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from pipelines.core.completeness import Completeness, ListMemory, Method
from pipelines.metadata.runs import Outcome, RunEnd, RunStart, end_run, start_run
from pipelines.metadata.scans import seal_scan
from pipelines.metadata.tables import Run, Scan

NOW = datetime(2026, 10, 1, 12, 0, 0, 123456, tzinfo=UTC)
PROOF = Completeness(
    complete=True,
    method=Method.ONE_PAGE,
    rows=3,
    repeated=0,
    not_seen=None,
    reason="",
    requests=2,
    started_at=NOW,
    ended_at=NOW + timedelta(seconds=9),
    used={},
    conflicting={},
    memory=ListMemory(),
)


def minutes(count: float) -> datetime:
    return NOW + timedelta(minutes=count)


def opened(scan_id: str, started_at: datetime, run_id: str = "run", stream: str = "usage") -> Scan:
    return Scan(
        scan_id=scan_id,
        run_id=run_id,
        connection="acme",
        stream=stream,
        day=started_at.date(),
        started_at=started_at,
        file=f"{scan_id}.jsonl.zst",
    )


def running(session: Session, run_id: str, *, began: float = 0) -> Run:
    return start_run(session, RunStart(run_id, "acme", "command", minutes(began)))


def ended(session: Session, run_id: str, outcome: Outcome = Outcome.COMPLETE) -> Run:
    return end_run(session, run_id, RunEnd(minutes(99), outcome, None, 0, 0))


def sealed(session: Session, scan: Scan) -> Scan:
    session.add(scan)
    return seal_scan(session, scan.scan_id, PROOF, "digest")
