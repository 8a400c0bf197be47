"""Scans, their pages and manifests: what is written is what is read."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError

from pipelines.state import journal
from pipelines.state.journal import LinkedPage, ManifestRow, Reading, ScanState
from pipelines.state.proof import Grade, Proof
from pipelines.state.tables import SCANS
from tests.virtual import EPOCH

DAY = date(2026, 1, 1)
READING = Reading("run-1", "default", "usage", DAY)
SECOND = timedelta(seconds=1)
PROOF = Proof(
    Grade.COMPLETE, 1190, 4, 0, 1, 0, "id", inferred=False, begun_at=EPOCH, ended_at=EPOCH + SECOND
)


def linked(position: int) -> LinkedPage:
    return LinkedPage(
        position=position,
        offset=position * 500,
        limit=500,
        rows=500 - position,
        sha256=f"{position:064x}",
        status=200,
        request_id=None if position else "r-0",
        sent_at=EPOCH + position * SECOND,
        answered_at=EPOCH + (position + 0.25) * SECOND,
        rate_limit={"x-ratelimit-limit": "5", "x-ratelimit-reset": str(position), "age": "7"},
    )


def manifest(number: int, reading: Reading = READING) -> ManifestRow:
    return ManifestRow(
        connection=reading.connection,
        stream=reading.stream,
        day=reading.day,
        number=number,
        scan=f"{reading.connection}/{reading.stream}/{reading.day}-{number}",
        file=f"{reading.connection}/{reading.stream}/{reading.day}.{number:03}.json",
        pages=3,
        rows=1200,
        proof=PROOF,
        written_at=EPOCH + number * SECOND,
    )


def test_a_scan_is_begun_as_reading(ledger: Engine) -> None:
    scan = journal.begin(ledger, READING, EPOCH)
    with ledger.connect() as connection:
        (row,) = connection.execute(select(SCANS)).mappings()
    assert dict(row) == {
        "scan": scan,
        "run": "run-1",
        "connection": "default",
        "stream": "usage",
        "day": DAY,
        "address": "",
        "begun_at": EPOCH,
        "ended_at": None,
        "status": "reading",
        "error": None,
        "proof": None,
    }


# Why a scan failed, the proof where it was read to an end, and whether the next run reads on.
ENDS: list[tuple[str, Proof | None, str, bool]] = [
    ("503 on /v2/usage", None, "failed", True),
    ("", None, "failed", True),
    ("usage: NOT PROVEN", replace(PROOF, grade=Grade.NOT_PROVEN), "unproven", False),
]


@pytest.mark.parametrize(("error", "proof", "status", "goes_on"), ENDS)
def test_a_scan_fails_with_or_without_a_proof(
    ledger: Engine, error: str, proof: Proof | None, status: str, *, goes_on: bool
) -> None:
    scan = journal.begin(ledger, READING, EPOCH)
    other = journal.begin(ledger, replace(READING, stream="billing"), EPOCH)
    journal.fail(ledger, scan, EPOCH + SECOND, error, proof)
    state = journal.latest_scan(ledger, "default", "usage", DAY)
    assert state == ScanState(READING.run, status, error, EPOCH, 0)
    assert journal.unfinished(ledger, READING, EPOCH) == (scan if goes_on else None)
    with ledger.connect() as connection:
        rows = {row.scan: row for row in connection.execute(select(SCANS))}
    assert (rows[scan].ended_at, rows[scan].proof) == (EPOCH + SECOND, proof)
    assert (rows[other].ended_at, rows[other].status) == (None, "reading")


def test_a_manifest_ends_its_scan_in_the_same_step(ledger: Engine) -> None:
    scan = journal.begin(ledger, READING, EPOCH)
    journal.add_manifest(ledger, replace(manifest(1), scan=scan))
    assert journal.latest_scan(ledger, "default", "usage", DAY) == ScanState(
        "run-1", "read", None, EPOCH, 0
    )
    assert journal.unfinished(ledger, READING, EPOCH) is None
    with ledger.connect() as connection:
        assert connection.execute(select(SCANS.c.proof)).scalar() == PROOF


def test_the_next_run_of_the_day_goes_on_with_what_was_killed(ledger: Engine) -> None:
    killed = journal.begin(ledger, READING, EPOCH)
    assert journal.unfinished(ledger, replace(READING, run="run-2"), EPOCH) == killed
    for other in (
        replace(READING, connection="second"),
        replace(READING, stream="billing"),
        replace(READING, day=DAY + timedelta(days=1)),
    ):
        assert journal.unfinished(ledger, other, EPOCH) is None
    assert journal.unfinished(ledger, READING, EPOCH + SECOND) is None  # too old
    journal.fail(ledger, killed, EPOCH, "503")
    journal.resume(ledger, killed, "run-2")
    state = journal.latest_scan(ledger, "default", "usage", DAY)
    assert state == ScanState("run-2", "reading", None, EPOCH, 0)


def test_the_latest_scan_is_of_one_connection_stream_and_day(ledger: Engine) -> None:
    readings = [
        READING,
        replace(READING, stream="billing"),
        replace(READING, connection="second"),
        replace(READING, day=DAY + timedelta(days=1)),
        READING,
    ]
    for number, reading in enumerate(readings):
        scan = journal.begin(ledger, reading, EPOCH + number * SECOND)
        journal.fail(ledger, scan, EPOCH, f"error {number}")
    assert journal.latest_scan(ledger, "default", "usage", DAY) == ScanState(
        READING.run, "failed", "error 4", EPOCH + 4 * SECOND, 0
    )
    assert journal.latest_scan(ledger, "second", "usage", DAY) == ScanState(
        READING.run, "failed", "error 2", EPOCH + 2 * SECOND, 0
    )
    assert journal.latest_scan(ledger, "second", "billing", DAY) is None


def test_pages_come_back_in_chain_order_and_whole(ledger: Engine) -> None:
    scan, other = (journal.begin(ledger, READING, EPOCH) for _ in range(2))
    for position in (2, 0, 1):
        journal.link(ledger, scan, linked(position))
    journal.link(ledger, other, linked(0))
    assert journal.pages(ledger, scan) == (linked(0), linked(1), linked(2))
    assert journal.pages(ledger, other) == (linked(0),)
    assert journal.pages(ledger, "none") == ()


def test_a_place_in_the_chain_is_taken_once(ledger: Engine) -> None:
    scan = journal.begin(ledger, READING, EPOCH)
    journal.link(ledger, scan, linked(0))
    with pytest.raises(IntegrityError):
        journal.link(ledger, scan, replace(linked(0), sha256="f" * 64))
    assert journal.pages(ledger, scan) == (linked(0),)


def test_manifests_are_numbered_by_connection_stream_and_day(ledger: Engine) -> None:
    for number in (1, 2):
        assert journal.next_number(ledger, READING) == number
        journal.add_manifest(ledger, manifest(number))
    assert journal.next_number(ledger, READING) == 3
    for other in (
        replace(READING, connection="second"),
        replace(READING, stream="billing"),
        replace(READING, day=DAY + timedelta(days=1)),
    ):
        assert journal.next_number(ledger, other) == 1


def test_a_number_and_a_scan_have_one_manifest(ledger: Engine) -> None:
    journal.add_manifest(ledger, manifest(1))
    for again in (replace(manifest(1), scan="other"), replace(manifest(1), number=2)):
        with pytest.raises(IntegrityError):
            journal.add_manifest(ledger, again)


def test_manifests_are_listed_as_written_and_may_be_narrowed(ledger: Engine) -> None:
    second = replace(READING, connection="second")
    later = replace(READING, day=DAY + timedelta(days=1))
    mine = [manifest(1), manifest(2), manifest(1, later)]
    billing = manifest(1, replace(READING, stream="billing"))
    for row in (billing, *reversed(mine), manifest(1, replace(second, day=later.day))):
        journal.add_manifest(ledger, row)
    assert journal.manifests(ledger, "usage", "default") == tuple(reversed(mine))
    assert journal.manifests(ledger, "usage", "default", DAY) == (mine[1], mine[0])
    assert len(journal.manifests(ledger, "usage")) == 4
    assert len(journal.manifests(ledger, "usage", day=later.day)) == 2
    assert journal.manifests(ledger, "partners") == ()
