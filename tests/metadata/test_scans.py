"""Scans: which is resumed, which a build loads, which waits for a person."""

from datetime import date

import msgspec
from sqlalchemy.orm import Session

from pipelines.core.proof import ListTraits
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import (
    ScanStatus,
    buildable_scans,
    held_scans,
    list_traits,
    newest_sealed,
    scan_to_resume,
    set_status,
)
from pipelines.metadata.tables import Scan
from tests.metadata.rows import PROOF, add_run, minutes, opened, seal


def buildable(session: Session, *loaded: str) -> list[str]:
    return [scan.scan_id for scan in buildable_scans(session, set(loaded))]


def statuses(session: Session, *scan_ids: str) -> list[str]:
    return [session.get_one(Scan, scan_id).status for scan_id in scan_ids]


def test_a_list_remembers_its_newest_sealed_scan(session: Session) -> None:
    assert list_traits(session, "acme", "usage") == ListTraits()
    seal(session, opened("a", 0), opened("b", 1), opened("next day", 24 * 60))
    session.add(opened("open", 24 * 60 + 1))
    session.flush()
    session.expire_all()
    set_status(session, "b", ScanStatus.FAILED, "defect")
    scan = session.get_one(Scan, "a")
    assert (scan.status, scan.ended_at, scan.sha256) == ("sealed", PROOF.ended_at, "digest")
    assert (scan.complete, scan.rows, scan.requests) == (True, 3, 2)
    assert list_traits(session, "acme", "usage") == PROOF.traits
    with_key = msgspec.to_builtins(ListTraits(key="wrong", key_decided=True))
    for scan_id in ("a", "next day"):
        session.get_one(Scan, scan_id).traits = with_key
    for status in (ScanStatus.HELD, ScanStatus.REJECTED):
        session.get_one(Scan, "next day").status = status
        assert list_traits(session, "acme", "usage") == PROOF.traits
    for status in (ScanStatus.PRUNED, ScanStatus.APPROVED):
        session.get_one(Scan, "next day").status = status
        assert list_traits(session, "acme", "usage").key == "wrong"
    for day, expected in ((None, "next day"), (date(2026, 10, 1), "b"), (date(2026, 10, 3), None)):
        newest = newest_sealed(session, "acme", "usage", day=day)
        assert (newest and newest.scan_id) == expected
    assert newest_sealed(session, "acme", "billing") is None


def test_the_newest_open_scan_that_began_in_time_is_resumed(session: Session) -> None:
    session.add_all(opened(f"{minute}", minute) for minute in range(3))
    session.add(opened("other list", 0, stream="billing"))
    scan = scan_to_resume(session, "acme", "usage", minutes(1))
    assert scan is not None
    assert scan.scan_id == "2"
    assert statuses(session, "0", "1", "2", "other list") == [*2 * ["abandoned"], *2 * ["open"]]
    assert scan_to_resume(session, "acme", "usage", minutes(2)) is scan
    assert scan_to_resume(session, "acme", "usage", minutes(2.5)) is None
    assert scan_to_resume(session, "acme", "usage", minutes(0)) is None
    assert statuses(session, "2") == ["abandoned"]


def test_a_build_loads_sealed_scans_of_ended_runs_in_order(session: Session) -> None:
    alive = add_run(session, "alive")
    add_run(session, "killed", killed=True)
    add_run(session, "failed", Outcome.FAILED)
    seal(
        session,
        opened("alive", 0, "alive"),
        opened("killed", 3, "killed"),
        opened("failed", 2, "failed", stream="billing"),
        opened("without run", 1, "pruned", stream="partners"),
    )
    session.add(opened("open", 4, "failed"))
    assert buildable(session) == ["without run", "failed", "killed"]
    assert buildable(session, "without run") == ["failed", "killed"]
    alive.ended_at = minutes(99)
    assert buildable(session, "failed") == ["alive", "without run", "killed"]
    assert buildable(session, "killed") == ["without run", "failed"]  # never one behind a newer one
    assert statuses(session, "alive", "killed", "open") == ["sealed", "sealed", "open"]


def test_at_most_the_newest_scan_of_a_list_is_held(session: Session) -> None:
    seal(session, *(opened(scan_id, minute) for minute, scan_id in enumerate("abcd")))
    seal(session, opened("other", 0, stream="billing"))
    set_status(session, "d", ScanStatus.FAILED, "defect")  # no build will load it
    session.add(opened("open", 4))
    for scan_id in ("other", *"abc"):
        set_status(session, scan_id, ScanStatus.HELD, "x.")
    assert [scan.scan_id for scan in held_scans(session)] == ["other", "c"]
    seal(session, opened("e", 5))
    for status in (ScanStatus.SEALED, ScanStatus.PRUNED, ScanStatus.REJECTED):
        set_status(session, "e", status)
        assert [scan.scan_id for scan in held_scans(session)] == ["other"]
