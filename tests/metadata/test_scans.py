"""Scans: which is resumed, which a build loads, which waits for a person."""

from datetime import date
from itertools import product

import pytest
from sqlalchemy.orm import Session

from pipelines.core.errors import ScanNotFound
from pipelines.metadata.engine import this_process
from pipelines.metadata.runs import (
    Outcome,
    RunStart,
    close_dead_runs,
    is_running,
    recent_runs,
    start_run,
)
from pipelines.metadata.scans import (
    ScanStatus,
    buildable_scans,
    get_scan,
    held_scans,
    newest_sealed,
    scan_to_resume,
    set_status,
)
from pipelines.metadata.tables import Run
from tests.metadata.rows import NOW, PROOF, ended, minutes, opened, running, sealed


def killed(session: Session, run_id: str) -> Run:
    run = running(session, run_id)
    run.owner = this_process() + "0"
    return run


def buildable(session: Session, *loaded: str) -> list[str]:
    return [scan.scan_id for scan in buildable_scans(session, set(loaded))]


def statuses(session: Session, *scan_ids: str) -> list[str]:
    return [get_scan(session, scan_id).status for scan_id in scan_ids]


def test_a_run_is_recorded_from_start_to_end(session: Session) -> None:
    start = RunStart("run", "acme", "schedule", NOW, scheduled_at=minutes(-1))
    run = start_run(session, start)
    assert is_running(run)
    assert (run.owner, run.scheduled_at, run.outcome) == (this_process(), minutes(-1), None)
    ended(session, "run", Outcome.PARTIAL)
    assert (run.outcome, run.ended_at, is_running(run)) == ("partial", minutes(99), False)


def test_a_killed_run_is_closed_as_interrupted(session: Session) -> None:
    running(session, "alive")
    killed(session, "killed")
    running(session, "ended")
    ended(session, "ended")
    assert [run.run_id for run in close_dead_runs(session, minutes(5))] == ["killed"]
    assert close_dead_runs(session, minutes(6)) == []
    run = session.get_one(Run, "killed")
    assert (run.outcome, run.ended_at) == ("interrupted", minutes(5))
    assert "partner-sync sync" in (run.message or "")


def test_recent_runs_are_listed_newest_first(session: Session) -> None:
    for minute in range(4):
        running(session, f"run {minute}", began=minute)
    start_run(session, RunStart("other", "other", "command", NOW))
    assert [run.run_id for run in recent_runs(session, 2)] == ["run 3", "run 2"]
    assert len(recent_runs(session, 0)) == 5
    assert [run.run_id for run in recent_runs(session, connection="other")] == ["other"]


def test_a_sealed_scan_has_the_numbers_of_its_proof(session: Session) -> None:
    scan = sealed(session, opened("a", NOW))
    session.expire_all()
    assert (scan.status, scan.ended_at, scan.sha256) == ("sealed", PROOF.ended_at, "digest")
    assert (scan.complete, scan.rows, scan.requests) == (True, 3, 2)


def test_the_newest_open_scan_that_began_in_time_is_resumed(session: Session) -> None:
    for minute in range(3):
        session.add(opened(f"{minute}", minutes(minute)))
    session.add(opened("other list", NOW, stream="billing"))
    scan = scan_to_resume(session, "acme", "usage", minutes(2))
    assert scan is not None
    assert scan.scan_id == "2"
    assert statuses(session, "0", "1", "2", "other list") == [*2 * ["abandoned"], *2 * ["open"]]
    assert scan_to_resume(session, "acme", "usage", minutes(2.5)) is None
    assert scan_to_resume(session, "acme", "usage", NOW) is None
    assert statuses(session, "2") == ["abandoned"]


def test_a_build_loads_sealed_scans_of_ended_runs_in_order(session: Session) -> None:
    running(session, "alive")
    killed(session, "killed")
    running(session, "failed")
    ended(session, "failed", Outcome.FAILED)
    sealed(session, opened("alive", minutes(0), "alive"))
    sealed(session, opened("killed", minutes(3), "killed"))
    sealed(session, opened("failed", minutes(2), "failed", stream="billing"))
    sealed(session, opened("without run", minutes(1), "pruned", stream="partners"))
    session.add(opened("open", minutes(4), "failed"))
    assert buildable(session) == ["without run", "failed", "killed"]
    assert buildable(session, "without run") == ["failed", "killed"]
    ended(session, "alive")
    assert buildable(session, "failed") == ["alive", "without run", "killed"]


def test_a_scan_older_than_a_loaded_one_is_superseded(session: Session) -> None:
    sealed(session, opened("old", minutes(0)))
    sealed(session, opened("other list", minutes(0), stream="billing"))
    sealed(session, opened("loaded", minutes(1)))
    sealed(session, opened("new", minutes(2)))
    assert buildable(session, "loaded") == ["other list", "new"]
    old = get_scan(session, "old")
    assert (old.status, old.reason) == ("superseded", "Scan loaded is newer and loaded.")
    assert statuses(session, "loaded") == ["sealed"]


def test_a_held_scan_waits_for_a_person(session: Session) -> None:
    sealed(session, opened("a", NOW))
    assert set_status(session, "a", ScanStatus.HELD, "all rows gone") == ScanStatus.HELD
    assert buildable(session) == []
    assert [(scan.scan_id, scan.reason) for scan in held_scans(session)] == [("a", "all rows gone")]
    set_status(session, "a", ScanStatus.APPROVED, "closed partner")
    assert buildable(session) == ["a"]
    assert held_scans(session) == []
    sealed(session, opened("b", minutes(1)))
    set_status(session, "b", ScanStatus.HELD, "reason")
    set_status(session, "b", ScanStatus.REJECTED, "wrong account")
    assert buildable(session) == ["a"]


def test_only_a_held_scan_is_decided(session: Session) -> None:
    scan = sealed(session, opened("a", NOW))
    undecided = [each for each in ScanStatus if each != ScanStatus.HELD]
    for decision, status in product((ScanStatus.APPROVED, ScanStatus.REJECTED), undecided):
        scan.status = status
        with pytest.raises(ScanNotFound, match=f"is {status}, not held"):
            set_status(session, "a", decision, "reason")
        assert scan.status == status


def test_a_newer_sealed_scan_supersedes_a_held_one(session: Session) -> None:
    sealed(session, opened("a", NOW))
    sealed(session, opened("other list", NOW, stream="billing"))
    for scan_id in ("a", "other list"):
        set_status(session, scan_id, ScanStatus.HELD, "empty.")
    sealed(session, opened("b", minutes(1)))
    assert statuses(session, "a", "b", "other list") == ["superseded", "sealed", "held"]
    assert get_scan(session, "a").reason == "empty. Scan b is newer."
    assert buildable(session) == ["b"]


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_at_most_the_newest_scan_of_a_list_is_held(
    session: Session, order: tuple[str, ...]
) -> None:
    for minute, scan_id in enumerate("abc"):
        sealed(session, opened(scan_id, minutes(minute)))
    results = {scan_id: set_status(session, scan_id, ScanStatus.HELD, "x.") for scan_id in order}
    assert results["c"] == ScanStatus.HELD
    assert statuses(session, "a", "b", "c") == ["superseded", "superseded", "held"]


def test_a_scan_is_held_beside_a_newer_one_that_no_build_will_load(session: Session) -> None:
    for minute, scan_id in enumerate("ab"):
        sealed(session, opened(scan_id, minutes(minute)))
    set_status(session, "b", ScanStatus.FAILED, "defect")
    session.add(opened("open", minutes(2)))
    assert set_status(session, "a", ScanStatus.HELD, "empty.") == ScanStatus.HELD


def test_the_newest_sealed_scan_of_a_day_is_found(session: Session) -> None:
    for scan_id, minute in (("a", 0), ("b", 1), ("next day", 24 * 60)):
        sealed(session, opened(scan_id, minutes(minute)))
    session.add(opened("open", minutes(2)))
    set_status(session, "b", ScanStatus.FAILED, "defect")

    def found(**limits: date) -> str | None:
        scan = newest_sealed(session, "acme", "usage", **limits)  # type: ignore[arg-type]
        return scan.scan_id if scan else None

    assert found() == "next day"
    assert found(day=NOW.date()) == "b"
    assert found(day=date(2026, 10, 3)) is None
    assert found(day=NOW.date(), not_before=minutes(2)) is None
    assert found(not_before=minutes(2)) == "next day"
    assert newest_sealed(session, "acme", "billing") is None


def test_an_unknown_scan_is_named(session: Session) -> None:
    with pytest.raises(ScanNotFound, match="no scan x") as caught:
        set_status(session, "x", ScanStatus.HELD)
    assert "partner-sync status" in caught.value.remedy
