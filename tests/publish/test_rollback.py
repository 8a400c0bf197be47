"""Rollbacks, forward too, and what later builds, approvals and rebuilds make of the data."""

from getpass import getuser

import pytest

from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.publish.build import build, rebuild
from pipelines.publish.prune import prune
from pipelines.publish.versions import previous_versions, rollback
from tests.publish.homes import Reading, Record, Stores, home_of, read, usage
from tests.publish.named import load, roll_back


def publish_three(stores: Stores) -> None:
    for count in (4, 5, 6):
        read(stores, Reading(usage(*range(count))))
        build(stores)


three = home_of(publish_three)  # versions 1 to 3, of three scans: 4, 5 and 6 rows


def test_a_rollback_even_to_a_file_that_a_person_restored_is_not_undone_by_the_next_build(
    published: Stores,
) -> None:
    (first,) = published.warehouse.versions()
    backup, published = first.path.read_bytes(), published.changed(keep_versions=2)
    *undone, unknown = [load(published, *range(1, end)) for end in (12, 13, 14)]
    with pytest.raises(PartnerSyncError, match=r"Version 1 is not kept \(kept: 3, 4\)"):
        roll_back(published, 1)
    first.path.write_bytes(backup)
    with published.metadata.transaction() as session:  # as from a backup before the last scan
        session.delete(session.get_one(Scan, unknown))
    assert roll_back(published, 1) == first
    kept = dict.fromkeys((1, 3, 4), "published")
    assert published.versions() == kept | {2: "deleted"}
    assert len(published.keys()) == 10
    assert build(published).is_new is False
    assert [published.statuses()[scan] for scan in undone] == ["superseded", "held"]
    read(published, Reading(usage(*range(1, 11), 14)))
    built = build(published)
    assert built.version is not None
    assert built.version.number == 5
    assert {"u12", "u14"} & set(published.keys()) == {"u14"}
    decisions = "SELECT kind, subject, person, reason FROM meta.decisions"
    assert published.rows(decisions) == [("rollback", "1", getuser(), "wrong")]


def test_a_rebuild_of_a_damaged_version_does_not_load_what_was_rolled_back(three: Stores) -> None:
    roll_back(three, 2)
    before, file = three.keys(), three.warehouse.versions()[1].path
    file.chmod(0o644)
    file.write_bytes(b"")
    assert rebuild(three).is_new
    assert three.keys() == before == ["u0", "u1", "u2", "u3", "u4"]


def test_a_rollback_from_a_damaged_version_passes_what_was_rolled_back(published: Stores) -> None:
    load(published, *range(1, 12))
    rollback(published, None, "wrong")
    load(published, *range(1, 10), 15)
    file = published.warehouse.versions()[2].path
    file.chmod(0o644)
    file.write_bytes(b"")
    rollback(published, None, "damaged")
    assert published.warehouse.published() == published.warehouse.versions()[0]


@pytest.mark.parametrize("begin", [b"", b"\0" * 8192])
def test_a_rollback_needs_no_newer_file(three: Stores, begin: bytes) -> None:
    file = three.warehouse.versions()[2].path
    file.chmod(0o644)
    file.write_bytes(begin)
    roll_back(three, 2)
    assert len(three.keys()) == 5


def test_a_rollback_to_a_newer_version_releases_its_scans(three: Stores) -> None:
    older = previous_versions(three, three.warehouse.require_published())
    assert [each.number for each in older] == [2, 1]
    roll_back(three, 1)
    assert [*three.statuses().values()] == ["sealed", "superseded", "held"]
    roll_back(three, 3)
    assert [*three.statuses().values()] == ["sealed"] * 3
    assert len(three.keys()) == 6
    roll_back(three, 2)
    *_others, rejected = three.statuses()
    three.set_status(rejected, ScanStatus.REJECTED)
    roll_back(three, 3)
    assert [*three.statuses().values()] == ["sealed"] * 3


def test_a_version_that_was_rolled_back_is_deleted_before_one_that_was_not(three: Stores) -> None:
    roll_back(three, 1)
    read(three, Reading([{"id": "b1"}], stream="billing"))
    build(three)
    assert [each.number for each in three.warehouse.versions()] == [1, 3, 4]
    (version,) = previous_versions(three, three.warehouse.require_published())
    assert version.number == 1
    *_others, rejected, _newest = three.statuses()
    three.set_status(rejected, ScanStatus.REJECTED)
    before = three.statuses()
    roll_back(three, 4)
    assert three.statuses() == before


def test_a_scan_that_failed_is_not_loaded_behind_a_newer_one(stores: Stores) -> None:
    failed = read(stores, Reading(usage(1, amount="2.00")))
    file = stores.archive.folder / "acme" / "usage" / f"{failed}.jsonl.zst"
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    assert failed in build(stores).failed
    file.write_bytes(whole)  # from a backup
    for amount in ("3.00", "4.00"):
        read(stores, Reading(usage(1, amount=amount)))
    build(stores)
    prune(stores, stores.clock.now)
    with pytest.raises(PartnerSyncError, match="Nothing was rebuilt"):
        rebuild(stores)
    assert stores.statuses()[failed] == ScanStatus.FAILED
    assert stores.rows("SELECT amount::VARCHAR FROM current.usage") == [("4.00",)]


@pytest.mark.parametrize("before", [None, "id"])
def test_another_key_that_is_approved_is_that_of_every_row(
    stores: Stores, before: str | None
) -> None:
    def rows(value: int) -> list[Record]:
        return [{"id": f"u{n}", "code": f"c{n}", "v": value * (n > 0)} for n in range(4)]

    read(stores, Reading(rows(1), key=before))
    build(stores)
    scan = read(stores, Reading(rows(2), key="code", complete=False))
    (result,) = build(stores).results
    assert "Every row would be deleted" in (result.held or "")
    stores.set_status(scan, ScanStatus.APPROVED, "right")
    (result,) = build(stores).results
    assert (result.new, result.deleted, result.unchanged) == (4, 4, 0)
    assert stores.keys() == ["c0", "c1", "c2", "c3"]
    read(stores, Reading(rows(3), key="code", complete=False))
    build(stores)
    assert stores.rows("SELECT _key, v FROM current.usage ORDER BY 1")[1:] == [
        (f"c{n}", 3) for n in (1, 2, 3)
    ]
    assert len(stores.keys()) == 4


def test_a_key_that_is_given_up_is_asked_for_once(stores: Stores) -> None:
    read(stores, Reading(usage(1, 2, 3)))
    build(stores)
    scan = read(stores, Reading(usage(1, 2, 4), key=None))
    assert build(stores).results[0].held
    stores.set_status(scan, ScanStatus.APPROVED, "right")
    build(stores)
    read(stores, Reading(usage(*range(1, 12)), key=None))
    (result,) = build(stores).results
    assert (result.held, len(stores.keys())) == (None, 11)
