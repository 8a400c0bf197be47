"""A scan that goes on: with pages of its own list and caller only, without those that it lost."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from pipelines.state import identities
from pipelines.state.identities import Identity
from pipelines.state.proof import Grade
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.redaction import Act, redacted
from tests.archives import changed, lost
from tests.archives import pages as pages_of
from tests.warehouse.conftest import Warehouse
from tests.warehouse.listed import (
    CLOCK,
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


def killed(warehouse: Warehouse, first: int = 0) -> None:
    """Leave a scan of 20 records behind, of which two pages were read."""
    records = [{"id": first + each["id"]} for each in numbered(20)]
    with pytest.raises(KilledError):
        Scans(warehouse).scan(Listed(records, deadly=2), KNOWN)


def damaged(archive: Archive, file: str) -> None:
    changed(archive, file, lambda content: content[:-3])


@pytest.mark.parametrize("befallen", [lost, damaged])
@pytest.mark.parametrize("others", [{}, {"name": "the same row, changed since"}])
def test_a_page_that_was_lost_is_read_again_and_its_rows_are_folded(
    warehouse: Warehouse, befallen: Callable[[Archive, str], None], others: dict[str, str]
) -> None:
    killed(warehouse)
    for file in pages_of(warehouse.archive):
        befallen(warehouse.archive, file)
    scans, listed = Scans(warehouse), Listed(numbered(20, **others))
    row = scans.scan(listed, KNOWN)
    assert row.proof.grade is Grade.COMPLETE
    assert row.proof.requests == len(listed.asked)
    assert values(scans.folded(row)) == list(range(20))


def test_a_stored_manifest_with_a_page_that_was_lost_is_not_taken_over(
    warehouse: Warehouse,
) -> None:
    scans = Scans(warehouse)
    first = scans.scan(Listed(numbered(20)), KNOWN)
    with warehouse.ledger.begin() as ledger:  # as if it was killed before the manifest's row
        ledger.exec_driver_sql("DELETE FROM manifests")
        ledger.exec_driver_sql("UPDATE scans SET status = 'reading'")
    lost(warehouse.archive, pages_of(warehouse.archive)[0])
    row = scans.scan(Listed(numbered(20, name="changed")), KNOWN)
    assert (row.scan, row.file) == (first.scan, first.file.replace("001", "002"))
    assert values(scans.folded(row)) == list(range(20))


def test_a_scan_does_not_go_on_for_another_caller(warehouse: Warehouse) -> None:
    identities.pin(warehouse.ledger, "default", Identity("host", "1", "one"), CLOCK.now())
    killed(warehouse, first=500)
    identities.pin(warehouse.ledger, "default", Identity("host", "2", "two"), CLOCK.now(), "ann")
    scans = Scans(warehouse)
    row = scans.scan(Listed(numbered(20)), KNOWN)
    assert values(scans.folded(row)) == list(range(20))


def test_a_scan_does_not_go_on_at_another_address(warehouse: Warehouse) -> None:
    killed(warehouse, first=500)
    scans = Scans(warehouse)
    other = replace(run_of("run-2"), address="https://api.example/v2/others")
    row = scans.scan(Listed(numbered(20)), KNOWN, other)
    assert READING.address != other.address
    assert values(scans.folded(row)) == list(range(20))


def test_a_page_of_which_records_were_erased_is_read_again(warehouse: Warehouse) -> None:
    killed(warehouse)
    other = warehouse.other()  # of another run, which the first one has to notice
    pages = list(other.pages())
    assert warehouse.archive.redactions == {}
    act = Act("ann", CLOCK.now(), "request 7")
    other.redact([redacted(other, digest, [0], act) for digest in pages])
    scans, listed = Scans(warehouse), Listed(numbered(20))
    row = scans.scan(listed, KNOWN)
    assert row.proof.grade is Grade.COMPLETE
    assert row.proof.requests == len(listed.asked)
    there = values(scans.folded(row))
    assert (0 in there, 19 in there) == (False, True)
    assert set(pages) <= warehouse.archive.redactions.keys()
    assert not set(warehouse.archive.pages()) & set(pages)


def test_a_scan_that_goes_on_late_takes_in_the_pages_that_it_has(warehouse: Warehouse) -> None:
    """After sync_max_minutes no list is counted further; what was read by then still counts."""

    def shuffled(records: list[Record], number: int) -> None:
        Random(number).shuffle(records)

    first = Scans(warehouse).scan(Listed(numbered(40), change=shuffled), KNOWN)
    with warehouse.ledger.begin() as ledger:  # as if it was killed before the manifest's row
        ledger.exec_driver_sql("DELETE FROM manifests")
        ledger.exec_driver_sql("UPDATE scans SET status = 'reading'")
    listed = Listed(numbered(40))
    again = Scans(warehouse, minutes=0).scan(listed, KNOWN)
    assert first.proof.grade is Grade.COMPLETE_BY_COUNT
    assert (again.proof, listed.asked) == (first.proof, [])
    late = Scans(warehouse, minutes=0).scan(Listed(numbered(40), change=shuffled), KNOWN)
    assert late.proof.reason == "Its rows were not counted within sync_max_minutes"
