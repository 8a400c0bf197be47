"""Rows of `runs`: one sync of one connection each, from its start to its outcome."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.metadata.engine import is_alive
from pipelines.metadata.tables import Run

KILLED = "The process ended without a result. `partner-sync sync` resumes its scans."


class Outcome(StrEnum):
    """How a run, or the reading of one list, ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


def is_running(run: Run) -> bool:
    """Return whether a run has not ended and its process lives."""
    return run.ended_at is None and is_alive(run.owner)


def close_dead_runs(session: Session, now: datetime, connection: str) -> None:
    """Mark runs whose process was killed as interrupted.

    The caller holds the lock of a connection, so no other run of it lives, whatever its owner is.
    """
    for run in session.scalars(select(Run).where(Run.ended_at.is_(None))):
        if run.connection == connection or not is_alive(run.owner):
            run.ended_at, run.outcome, run.message = now, Outcome.INTERRUPTED, KILLED


def recent_runs(session: Session, limit: int = 20) -> list[Run]:
    """Return runs, newest first (limit 0 = all)."""
    query = select(Run).order_by(Run.started_at.desc(), Run.run_id.desc())
    return list(session.scalars(query.limit(limit or None)))
