"""Runs, findings, decisions, and times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError
from pipelines.core.finding import Finding, Severity
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.engine import Metadata
from pipelines.metadata.findings import record_findings
from pipelines.metadata.runs import Outcome, end_killed_runs, is_running, recent_runs
from pipelines.metadata.tables import Decision, FindingRow
from tests.metadata.rows import NOW, add_run, minutes


def finding(code: str, subject: str = "") -> Finding:
    return Finding(code, Severity.WARNING, "acme", "usage", subject, f"{code} happened", "")


def test_times_keep_their_zone_and_microseconds(metadata: Metadata) -> None:
    with metadata.transaction() as session:
        run = add_run(session, "run")
        run.started_at = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    with metadata.transaction() as session:
        (run,) = recent_runs(session, 0)
        assert (run.started_at, run.started_at.tzinfo) == (NOW, UTC)
        run.started_at = datetime(2026, 10, 1)  # noqa: DTZ001 - the fault
        with pytest.raises(StatementError, match="without a time zone"):
            session.flush()
        session.expire_all()


def test_a_killed_run_is_closed_as_interrupted(session: Session) -> None:
    alive = add_run(session, "alive")
    killed = add_run(session, "killed", killed=True)
    ended = add_run(session, "ended", Outcome.PARTIAL)
    ended.started_at = minutes(1)
    assert [is_running(session, run) for run in (alive, killed, ended)] == [True, False, False]
    elsewhere = add_run(session, "elsewhere")  # under another name of the machine
    elsewhere.owner, elsewhere.connection = alive.owner, "other"
    for minute in (5, 6):
        end_killed_runs(session, minutes(minute), "other")
    assert (alive.outcome, elsewhere.outcome) == (None, "interrupted")
    assert (killed.outcome, killed.ended_at) == ("interrupted", minutes(5))
    assert "partner-sync sync" in (killed.message or "")
    assert recent_runs(session, limit=2) == [ended, killed]
    assert len(recent_runs(session, limit=0)) == 4


def test_a_finding_is_new_once_and_clears_when_it_is_not_found_again(session: Session) -> None:
    other = finding("a", "column")
    for minute, found, expected in (
        (0, [finding("a"), other, other], [("", 0, 0, None), ("column", 0, 0, None)]),
        (1, [finding("a"), finding("a")], [("", 0, 1, None), ("column", 0, 0, 1)]),
        (2, [other], [("", 0, 1, 2), ("column", 2, 2, None)]),
    ):
        record_findings(session, found, minutes(minute))
        rows = session.scalars(select(FindingRow).order_by(FindingRow.subject))
        assert [(r.subject, r.first_seen, r.last_seen, r.cleared_at) for r in rows] == [
            (subject, *(time if time is None else minutes(time) for time in times))
            for subject, *times in expected
        ]


def test_a_decision_needs_a_reason(session: Session) -> None:
    decision = Decision(decided_at=NOW, person="Ada", kind="approve", subject="s", reason=" ")
    with pytest.raises(ConfigurationError, match="needs a reason") as caught:
        add_decision(session, decision)
    assert "--reason" in caught.value.remedy
    assert session.scalars(select(Decision)).all() == []
