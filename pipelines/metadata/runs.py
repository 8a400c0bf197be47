"""Rows of `runs`: one sync of one connection each, from its start to its outcome."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.metadata.engine import is_alive, this_process
from pipelines.metadata.tables import Run

KILLED = "The process ended without a result. `partner-sync sync` resumes its scans."


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class RunStart:
    """What is known of a run when it starts. `trigger` is command, schedule or backfill."""

    run_id: str
    connection: str
    trigger: str
    started_at: datetime
    scheduled_at: datetime | None = None


@dataclass(frozen=True)
class RunEnd:
    """What is known of a run when it has ended. `rate_limited` counts answers with status 429."""

    ended_at: datetime
    outcome: Outcome
    message: str | None
    requests: int
    rate_limited: int


def start_run(session: Session, start: RunStart) -> Run:
    """Add a run of this process."""
    run = Run(owner=this_process(), **asdict(start))
    session.add(run)
    session.flush()
    return run


def end_run(session: Session, run_id: str, end: RunEnd) -> Run:
    """Record how a run ended."""
    run = session.get_one(Run, run_id)
    for name, value in asdict(end).items():
        setattr(run, name, value)
    session.flush()
    return run


def is_running(run: Run) -> bool:
    """Return whether a run has not ended and its process lives."""
    return run.ended_at is None and is_alive(run.owner)


def close_dead_runs(session: Session, now: datetime) -> list[Run]:
    """Mark runs whose process was killed as interrupted; return them."""
    unended = session.scalars(select(Run).where(Run.ended_at.is_(None)).order_by(Run.started_at))
    dead = [run for run in unended if not is_alive(run.owner)]
    for run in dead:
        run.ended_at, run.outcome, run.message = now, Outcome.INTERRUPTED, KILLED
    session.flush()
    return dead


def recent_runs(session: Session, limit: int = 20, connection: str | None = None) -> list[Run]:
    """Return runs, newest first (limit 0 = all)."""
    query = select(Run).order_by(Run.started_at.desc(), Run.run_id.desc())
    if connection is not None:
        query = query.where(Run.connection == connection)
    return list(session.scalars(query.limit(limit) if limit else query))
