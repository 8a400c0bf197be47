"""Runs, scans and proofs for tests of the metadata database."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from pipelines.metadata.processes import this_process
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import seal_scan
from pipelines.metadata.tables import Run, Scan
from tests.archive.scans import proof

NOW = datetime(2026, 10, 1, 12, 0, 0, 123456, tzinfo=UTC)
PROOF = proof()


def minutes(count: float) -> datetime:
    return NOW + timedelta(minutes=count)


def add_run(
    session: Session, run_id: str, outcome: Outcome | None = None, *, killed: bool = False
) -> Run:
    """Add a run of this process, or of a killed one; with an outcome it has ended."""
    owner = this_process() + ("0" if killed else "")
    run = Run(run_id=run_id, connection="acme", trigger="command", started_at=NOW, owner=owner)
    run.outcome, run.ended_at = outcome, NOW if outcome else None
    session.add(run)
    session.flush()
    return run


def opened(scan_id: str, minute: float, run_id: str = "run", stream: str = "usage") -> Scan:
    began = minutes(minute)
    names: dict[str, Any] = {"scan_id": scan_id, "run_id": run_id, "stream": stream}
    return Scan(**names, connection="acme", started_at=began, day=began.date(), file=scan_id)


def seal(session: Session, *scans: Scan) -> None:
    session.add_all(scans)
    for scan in scans:
        seal_scan(session, scan.scan_id, PROOF, "digest")
