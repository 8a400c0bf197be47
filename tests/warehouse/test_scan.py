"""A scan: what is proven lands, what was killed goes on, one run at a time reads a list."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from pipelines.clock import Clock
from pipelines.errors import Unavailable
from pipelines.state import journal, registry
from pipelines.state.proof import Grade, Proof
from pipelines.state.registry import Pin
from pipelines.state.tables import PAGES, SCANS
from tests import archives
from tests.virtual import EPOCH
from tests.warehouse.conftest import Warehouse
from tests.warehouse.listed import (
    CLOCK,
    DAY,
    FIRST,
    KNOWN,
    READING,
    KilledError,
    Listed,
    Record,
    Scans,
    numbered,
    run_of,
    values,
)


def timeless(proof: Proof) -> Proof:
    """Return a proof without its times: those of a scan that was interrupted differ."""
    return replace(proof, begun_at=EPOCH, ended_at=EPOCH)


def test_a_scan_is_proven_bound_and_folded(warehouse: Warehouse) -> None:
    scans = Scans(warehouse)
    row = scans.scan(Listed(numbered(57)))
    assert (row.proof.grade, row.proof.rows, row.proof.requests) == (Grade.COMPLETE, 57, 9)
    assert (row.proof.key, row.proof.inferred) == ("id", True)
    manifest = warehouse.archive.read(row.file)
    assert manifest.proof == row.proof
    assert [page.offset for page in manifest.pages] == [0, 0, *range(7, 50, 7)]
    assert manifest.stitched == (0, *[7] * 7, 8)
    assert values(scans.folded(row)) == list(range(57))
    done = scans.news[-1]
    assert (done.done, done.rows, done.pages, done.expected) == (True, 57, 9, None)
    assert registry.pin(warehouse.ledger, "default", "things") == Pin("id", row.scan)


def test_a_second_scan_knows_what_to_expect(warehouse: Warehouse) -> None:
    scans = Scans(warehouse)
    scans.scan(Listed(numbered(57)))
    scans.news.clear()
    again = scans.scan(Listed(numbered(60)), KNOWN, run_of("run-2"))
    assert {news.expected for news in scans.news} == {57}
    assert not again.proof.inferred


def churning(records: list[Record], number: int) -> None:
    """Remove two rows and add one before every page after the first."""
    if number:
        del records[number % 5], records[-3]
        records.insert(len(records) // 2, {"id": 1000 + number})


@pytest.mark.parametrize("deadly", range(12))
@pytest.mark.parametrize("ahead", [False, True])
def test_a_scan_killed_at_any_page_ends_as_if_it_was_never_killed(
    warehouse: Warehouse, deadly: int, *, ahead: bool
) -> None:
    scans = Scans(warehouse, ahead=ahead)
    killed = Listed(numbered(57), deadly=deadly)
    rows = Listed(numbered(57))
    try:
        row = scans.scan(killed)
    except KilledError:
        row = scans.scan(rows, reading=run_of("run-2"))
        state = journal.latest_scan(warehouse.ledger, "default", "things", DAY)
        assert state is not None
        assert (state.run, state.status, state.error) == ("run-2", "read", None)
    undisturbed = Scans(warehouse)
    other = replace(READING, connection="other")
    expected = undisturbed.scan(Listed(numbered(57)), reading=other)
    assert timeless(row.proof) == timeless(expected.proof)
    assert values(scans.folded(row)) == list(range(57))
    linked = Counter(page.offset for page in journal.pages(warehouse.ledger, row.scan))
    assert linked == {0: 2} | dict.fromkeys(range(7, 50, 7), 1)
    if not ahead:  # a guess that was under way is no linked page
        asked = Counter([*killed.asked, *rows.asked])
        assert asked == linked


@pytest.mark.parametrize("deadly", range(1, 8))
def test_a_killed_scan_of_a_list_that_changes_is_sound_too(
    warehouse: Warehouse, deadly: int
) -> None:
    scans = Scans(warehouse)
    listed = Listed(numbered(57), change=churning, deadly=deadly)
    with pytest.raises(KilledError):
        scans.scan(listed)
    before = [page.sha256 for page in journal.pages(warehouse.ledger, _only(warehouse))]
    listed.deadly = None
    row = scans.scan(listed, reading=run_of("run-2"))
    pages = journal.pages(warehouse.ledger, row.scan)
    assert [page.sha256 for page in pages][: len(before)] == before
    assert len(pages) == len(listed.asked)  # each request is linked, none was made twice
    assert row.proof.grade is Grade.COMPLETE
    lived = {each["id"] for each in listed.records if each["id"] < 1000}
    assert lived <= {each["id"] for each in scans.folded(row)}


def _only(warehouse: Warehouse) -> str:
    with warehouse.ledger.connect() as ledger:
        return str(ledger.execute(select(SCANS.c.scan)).scalar_one())


# Why the first run ended, hours until the next, and whether that one goes on.
PAUSES: list[tuple[BaseException, float, bool]] = [
    (KilledError(), 1, True),
    (Unavailable("503"), 5.9, True),
    (Unavailable("503"), 6.1, False),
]


@pytest.mark.parametrize(("error", "hours", "goes_on"), PAUSES)
def test_an_unfinished_scan_is_read_on_for_six_hours(
    warehouse: Warehouse, error: BaseException, hours: float, *, goes_on: bool
) -> None:
    with pytest.raises(type(error)):
        Scans(warehouse).scan(Listed(numbered(57), deadly=3, error=error))
    later = Clock(lambda: CLOCK.now() + timedelta(hours=hours), CLOCK.monotonic, CLOCK.sleep)
    listed = Listed(numbered(57))
    row = Scans(warehouse, later).scan(listed, reading=run_of("run-2"))
    assert len(listed.asked) == (6 if goes_on else 9)
    with warehouse.ledger.connect() as ledger:
        assert len(ledger.execute(select(SCANS.c.scan)).all()) == (1 if goes_on else 2)
    assert row.proof.requests == 9


def test_a_page_that_was_lost_on_disk_is_asked_for_again(warehouse: Warehouse) -> None:
    with pytest.raises(KilledError):
        Scans(warehouse).scan(Listed(numbered(57), deadly=3))
    for file in archives.pages(warehouse.archive):
        archives.lost(warehouse.archive, file)
    row = Scans(warehouse).scan(Listed(numbered(57)))
    assert row.proof.grade is Grade.COMPLETE


def replaced(records: list[Record], number: int) -> None:
    records[:] = [{"id": 100 * number + row} for row in range(30)]


def test_what_is_not_proven_is_loaded_as_partial_and_read_anew(warehouse: Warehouse) -> None:
    scans = Scans(warehouse)
    listed = Listed(numbered(30), change=replaced)
    row = scans.scan(listed)
    assert (row.proof.grade, row.proof.requests) == (Grade.PARTIAL, len(listed.asked))
    assert row.proof.rows == len(scans.folded(row))
    assert row.proof.places == 30
    assert len(journal.pages(warehouse.ledger, _only(warehouse))) == len(listed.asked)
    quiet = Listed(numbered(30))
    second = scans.scan(quiet, reading=run_of("run-2"))
    assert (second.proof.grade, second.proof.requests) == (Grade.COMPLETE, len(quiet.asked))


def test_the_newest_answer_wins_whatever_the_order_of_pages(warehouse: Warehouse) -> None:
    def change(records: list[Record], number: int) -> None:
        records[8]["seen"] = number

    scans = Scans(warehouse)
    row = scans.scan(Listed(numbered(30, seen=0), change=change))
    rows = {each["id"]: each["seen"] for each in scans.folded(row)}
    assert rows[8] == 4  # the head witness read it last


def test_a_second_run_waits_for_the_first_and_takes_its_manifest(warehouse: Warehouse) -> None:
    scans, listed = Scans(warehouse), Listed(numbered(57))

    async def both() -> list[str]:
        first = asyncio.create_task(scans.reading(listed))
        await CLOCK.sleep(0)
        second = scans.reading(listed, reading=run_of("run-2"))
        return [row.file for row in await asyncio.gather(first, second)]

    files = asyncio.run(both())
    assert files[0] == files[1]
    assert scans.waits == ["things: another run is reading it: waiting for it"]
    assert len(listed.asked) == 9


def test_what_another_run_has_read_since_it_was_decided_is_not_read_again(
    warehouse: Warehouse,
) -> None:
    scans, late = Scans(warehouse), Listed(numbered(60))
    decided = scans.there()
    first = scans.scan(Listed(numbered(57)))

    second = asyncio.run(scans.scanner.scan(run_of("run-2"), late.fetch, FIRST, decided))

    assert second.file == first.file
    assert late.asked == []
    assert scans.waits == []


def test_a_run_that_waited_for_one_that_failed_goes_on_with_its_scan(warehouse: Warehouse) -> None:
    scans, listed = Scans(warehouse), Listed(numbered(57), deadly=4, error=Unavailable("503"))

    async def both() -> tuple[object, object]:
        first = asyncio.create_task(scans.reading(listed))
        await CLOCK.sleep(0)
        second = asyncio.create_task(scans.reading(Listed(numbered(57)), reading=run_of("run-2")))
        return tuple(await asyncio.gather(first, second, return_exceptions=True))  # type: ignore[return-value]

    failed, row = asyncio.run(both())
    assert isinstance(failed, Unavailable)
    assert isinstance(row, journal.ManifestRow)
    assert len(listed.asked) == 4
    assert row.proof.requests == 9


def test_a_manifest_that_was_stored_but_not_recorded_is_taken_over(warehouse: Warehouse) -> None:
    scans = Scans(warehouse)
    row = scans.scan(Listed(numbered(57)))
    with warehouse.ledger.begin() as ledger:
        ledger.exec_driver_sql("DELETE FROM manifests")
        ledger.exec_driver_sql("UPDATE scans SET status = 'reading'")
    listed = Listed(numbered(57))
    again = scans.scan(listed, reading=run_of("run-2"))
    assert listed.asked == []
    assert (again.file, again.scan) == (row.file, row.scan)
    with warehouse.ledger.begin() as ledger:
        ledger.exec_driver_sql("DELETE FROM manifests")
        ledger.execute(PAGES.delete())
        ledger.execute(SCANS.delete())
    other = scans.scan(listed, reading=run_of("run-3"))
    assert other.file.endswith(".002.json")
