"""Rollbacks, forward too, and what later builds, approvals and rebuilds make of the data."""

from datetime import date

import pytest

from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Close, Decision
from pipelines.versions import rollback
from pipelines.versions.change import change_versions
from pipelines.versions.prune import prune
from pipelines.versions.version_scans import previous_versions
from pipelines.warehouse.duckdb_file import Row
from tests.versions.homes import DAY, Reading, Record, Stores, home_of, read, usage
from tests.versions.named import load, roll_back


def publish_three(stores: Stores) -> None:
    for count in (4, 5, 6):
        read(stores, Reading(usage(*range(count))))
        build_with_books(stores)


three = home_of(publish_three)  # versions 1 to 3, of three scans: 4, 5 and 6 rows


@pytest.mark.long
def test_a_rollback_to_a_newer_version_releases_its_scans(three: Stores) -> None:
    older = previous_versions(three, three.warehouse.require_published())
    assert [each.number for each in older] == [2, 1]
    roll_back(three, 1)
    assert [*three.statuses().values()] == ["sealed", "held", "held"]
    roll_back(three, 3)
    assert [*three.statuses().values()] == ["sealed"] * 3
    assert len(three.keys()) == 6
    roll_back(three, 2)
    *_others, rejected = three.statuses()
    three.set_status(rejected, ScanStatus.REJECTED)
    roll_back(three, 1)
    assert [*three.statuses().values()] == ["sealed", "held", "rejected"]
    roll_back(three, 3)
    assert [*three.statuses().values()] == ["sealed"] * 3
    with three.metadata.transaction() as session:
        decided = [(each.kind, each.subject, each.reason) for each in session.query(Decision)]
    assert decided == [("rollback", number, "wrong") for number in "13213"]


def test_a_rebuild_leaves_out_what_was_rolled_back(three: Stores) -> None:
    roll_back(three, 1)
    assert rebuild_with_books(three).is_new
    assert len(three.keys()) == 4
    assert [*three.statuses().values()] == ["sealed", "held", "held"]


def test_a_scan_is_pruned_if_every_version_that_stays_holds_it(three: Stores) -> None:
    before = three.clock.now - DAY / 2  # the third scan and version are newer
    rows = [row["name"] for row in prune(three, before, dry_run=True)]
    assert rows == ["acme/usage 2026-11-02 02:00", "acme/usage 2026-11-03 02:00", "1", "2"]
    roll_back(three, 1)
    rows = [row["name"] for row in prune(three, before, dry_run=True)]
    assert rows == ["acme/usage 2026-11-02 02:00", "2"]


def test_a_lost_link_and_a_damaged_version_lead_back_to_what_was_published(three: Stores) -> None:
    roll_back(three, 2)
    three.home.link.unlink()
    with change_versions(three):
        assert three.warehouse.require_published().number == 2
    _oldest, damaged, _newest = three.warehouse.versions()
    damaged.path.chmod(0o644)
    damaged.path.write_bytes(b"")
    said = rollback.roll_back(three, None, "damaged")
    assert "The next build deletes the versions that contain them." in said
    assert three.warehouse.require_published().number == 1


@pytest.mark.long
def test_a_closed_version_that_was_rolled_back_is_not_what_a_rebuild_goes_back_to(
    published: Stores,
) -> None:
    undone = load(published, *range(1, 11), 99)
    about: Row = {"month": date(2026, 9, 1), "number": 1, "version": 2, "note": ""}
    about |= {"preparer": "ann", "reviewer": "bob", "manifest_sha256": ""}
    with published.metadata.transaction() as session:
        session.add(Close(**about, closed_at=published.clock.now))
    load(published, *range(1, 11), 98)
    assert published.versions() == dict.fromkeys((1, 2, 3), "published")
    roll_back(published, 1)
    read(published, Reading(usage(1), stream="other"))
    damaged = build_with_books(published).version
    assert published.versions() == {1: "published", 2: "deleted", 3: "deleted", 4: "published"}
    assert damaged
    damaged.path.chmod(0o644)
    damaged.path.write_bytes(b"")
    assert rebuild_with_books(published).is_new
    assert (len(published.keys()), len(published.keys(stream="other"))) == (10, 1)
    assert published.statuses()[undone] == ScanStatus.HELD


@pytest.mark.long
@pytest.mark.parametrize("before", [None, "id"])
def test_another_key_that_is_approved_is_that_of_every_row(
    stores: Stores, before: str | None
) -> None:
    def rows(value: int) -> list[Record]:
        return [{"id": f"u{n}", "code": f"c{n}", "v": value * (n > 0)} for n in range(4)]

    read(stores, Reading(rows(1), key=before))
    build_with_books(stores)
    scan = read(stores, Reading(rows(2), key="code", complete=False))
    (result,) = build_with_books(stores).results
    assert "Every row would be deleted" in (result.held or "")
    stores.set_status(scan, ScanStatus.APPROVED, "right")
    (result,) = build_with_books(stores).results
    assert (result.new, result.deleted, result.unchanged) == (4, 4, 0)
    assert stores.keys() == ["c0", "c1", "c2", "c3"]
    read(stores, Reading(rows(3), key="code", complete=False))
    build_with_books(stores)
    assert stores.rows("SELECT _key, v FROM current.usage ORDER BY 1")[1:] == [
        (f"c{n}", 3) for n in (1, 2, 3)
    ]
    assert len(stores.keys()) == 4


@pytest.mark.long
def test_a_key_that_is_given_up_is_asked_for_once(stores: Stores) -> None:
    read(stores, Reading(usage(1, 2, 3)))
    build_with_books(stores)
    scan = read(stores, Reading(usage(1, 2, 4), key=None))
    assert build_with_books(stores).results[0].held
    stores.set_status(scan, ScanStatus.APPROVED, "right")
    build_with_books(stores)
    read(stores, Reading(usage(*range(1, 12)), key=None))
    (result,) = build_with_books(stores).results
    assert (result.held, len(stores.keys())) == (None, 11)
