"""Rows of `runs`: one sync of one connection each, from its start to its outcome.

The next sync of the connection ends one whose process was killed: `end_killed_runs`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.metadata.processes import is_alive
from pipelines.metadata.tables import Run

ListStates = Mapping[str, Mapping[str, str]]  # `Run.lists`
KILLED = "The process ended without a result. `partner-sync sync` resumes its scans."


class Outcome(StrEnum):
    """How a run, or the reading of one list, ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


UNREAD = (Outcome.FAILED, Outcome.INTERRUPTED)


def unread(lists: ListStates) -> tuple[str, str]:
    """Return why lists of a run were not read to their end, and the remedies; each said once."""
    names = dict[str, list[str]]()
    remedies = dict[str, None]()
    for name, outcome in lists.items():
        if outcome["state"] in UNREAD:
            names.setdefault(outcome["message"], []).append(name)
            remedies[outcome["remedy"]] = None
    reasons = (f"{', '.join(streams)}: {reason}" for reason, streams in names.items())
    return " ".join(reasons), " ".join(filter(None, remedies))


def is_running(session: Session, run: Run) -> bool:
    """Return whether a run has not ended and its process lives."""
    return run.ended_at is None and is_alive(session.connection(), run.owner)


def end_killed_runs(session: Session, now: datetime, connection: str) -> None:
    """Mark runs whose process was killed as interrupted.

    The caller holds the lock of a connection, so no other run of it lives, whatever its owner is.
    """
    for run in session.scalars(select(Run).where(Run.ended_at.is_(None))):
        if run.connection == connection or not is_alive(session.connection(), run.owner):
            run.ended_at = now
            run.outcome = Outcome.INTERRUPTED
            run.message = KILLED


def redate_runs(session: Session, now: datetime, connection: str) -> datetime | None:
    """Move ended runs that began later than `now` before it; return the latest time of them.

    Their clock was ahead, or the clock was set back since. Else they would stay the last ones. The
    caller holds the lock of the connection.
    """
    future = select(Run).filter_by(connection=connection).where(Run.started_at >= now)
    runs = session.scalars(future.order_by(Run.started_at.desc(), Run.run_id.desc())).all()
    latest = runs[0].started_at if runs else None
    # The newest first, each a microsecond before the one behind it, so that their order stays.
    for place, run in enumerate(runs, 1):
        note = f"By a clock that was ahead, it began at {run.started_at:%Y-%m-%d %H:%M:%S} UTC."
        run.message = f"{run.message} {note}" if run.message else note
        run.started_at = now - place * timedelta.resolution
        run.ended_at = run.started_at
    return latest


def last_runs(
    session: Session, connection: str, streams: AbstractSet[str]
) -> list[tuple[Run, ListStates]]:
    """Return the ended runs of a connection with those of the lists that no newer one had."""
    # A run may read some lists only: it says nothing of the others.
    newest = (Run.started_at.desc(), Run.run_id.desc())
    missing = set(streams)
    ended = list[tuple[Run, ListStates]]()
    for run in session.scalars(select(Run).filter_by(connection=connection).order_by(*newest)):
        lists = {name: outcome for name, outcome in run.lists.items() if name in missing}
        if lists and not is_running(session, run):
            ended.append((run, lists))
            missing -= lists.keys()
        if not missing:
            break
    return ended


def recent_runs(session: Session, limit: int = 20) -> list[Run]:
    """Return runs, newest first (limit 0 = all)."""
    query = select(Run).order_by(Run.started_at.desc(), Run.run_id.desc())
    return list(session.scalars(query.limit(limit or None)))
