"""Scan files and versions are deleted by age; nothing that analysts see, or a rebuild needs, is."""

from datetime import datetime

import duckdb
import pytest
from sqlalchemy import delete

from pipelines.app.checkup import run_checks
from pipelines.app.maintenance import verify_files
from pipelines.core.errors import PartnerSyncError
from pipelines.finance.books import make_books
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.build import build, rebuild
from pipelines.versions.prune import prune
from tests.versions.homes import BEGIN, DAY, Reading, Stores, read, usage
from tests.versions.named import load, roll_back


def names(stores: Stores, before: datetime) -> list[tuple[str, str]]:
    return [(row["kind"], row["name"]) for row in prune(stores, before)]


@pytest.mark.long
def test_a_version_that_lacks_a_pruned_scan_is_no_checkpoint(published: Stores) -> None:
    (without,) = published.warehouse.versions()
    backup = without.path.read_bytes()
    pruned = load(published, *range(1, 12))
    undone = load(published, *range(1, 13))
    newest = published.warehouse.require_published().path
    content = newest.read_bytes()
    newest.chmod(0o644)
    newest.write_bytes(content + b"x")
    with pytest.raises(PartnerSyncError, match="Version 3 was changed after it was published"):
        prune(published, published.clock.now - DAY / 2)
    newest.write_bytes(content)
    prune(published, published.clock.now - DAY / 2)
    assert published.versions() == {1: "deleted", 2: "deleted", 3: "checkpoint"}
    without.path.write_bytes(backup)
    roll_back(published, 1)
    assert published.statuses()[pruned] == ScanStatus.PRUNED
    assert published.statuses()[undone] == ScanStatus.HELD
    assert verify_files(published)["damaged"] == []
    with pytest.raises(PartnerSyncError, match="2 scans of 2026-11-02 to 2026-11-03 were pruned"):
        rebuild(published)
    roll_back(published, 3)
    assert [each.scan_id for each in build(published).results] == []
    assert len(published.keys()) == 12


def test_a_version_that_was_rolled_back_is_no_checkpoint(published: Stores) -> None:
    load(published, *range(1, 12), 99)
    undone = published.warehouse.versions()[1].path
    backup = undone.read_bytes()
    roll_back(published, 1)
    load(published, *range(1, 12))
    prune(published, published.clock.now)
    undone.write_bytes(backup)
    assert rebuild(published).is_new
    assert published.versions() == {1: "deleted", 2: "deleted", 3: "checkpoint", 4: "published"}
    assert len(published.keys()) == 11


def test_a_file_that_is_no_version_of_ours_hinders_nothing(published: Stores) -> None:
    load(published, *range(1, 12))
    duckdb.connect(published.home.versions / "v00000009.duckdb").close()
    assert names(published, published.clock.now - DAY / 2) == [
        ("scan", "acme/usage 2026-11-02 02:00"),
        ("version", "1"),
    ]


@pytest.mark.long
def test_the_version_of_the_published_books_stays(published: Stores) -> None:
    few = published.changed(keep_versions=1)
    make_books(few)
    for last in (11, 12, 13):  # and no books, as if they could not be made
        read(few, Reading(usage(*range(1, last + 1))))
        build(few)
    assert [each.number for each in few.warehouse.versions()] == [1, 4]
    later = BEGIN + 300 * DAY
    assert "1" not in {
        each["name"] for each in prune(few, later, dry_run=True) if each["kind"] == "version"
    }
    make_books(few)
    load(few, *range(1, 15))
    assert [each.number for each in few.warehouse.versions()] == [4, 5]


def test_the_newest_scan_of_a_list_stays_and_one_that_never_ended_goes(published: Stores) -> None:
    assert names(published, BEGIN) == names(published, BEGIN + 300 * DAY) == []
    scan = read(published, Reading([]))
    with published.metadata.transaction() as session:
        abandoned = session.get_one(Scan, scan)
        abandoned.status, abandoned.sha256 = ScanStatus.ABANDONED, None
    load(published, *range(1, 12))
    roll_back(published, 1)
    assert names(published, BEGIN + 300 * DAY) == [
        ("scan", "acme/usage 2026-11-02 02:00"),
        ("scan", "acme/usage 2026-11-03 02:00"),
        ("version", "2"),
    ]


def test_a_lost_metadata_database_is_found_and_refuses_a_rebuild(published: Stores) -> None:
    with published.metadata.transaction() as session:
        session.execute(delete(Scan))
    with pytest.raises(
        PartnerSyncError, match="1 scans of the published version are not in the meta"
    ):
        rebuild(published)
    found = {each.check.code: each.findings for each in run_checks(published)}
    assert "cannot be rebuilt" in found["scans_unknown"][0].message
