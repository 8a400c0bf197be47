import logging
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from random import Random

import duckdb
import pytest

from pipelines.app.nightly import after_reading
from pipelines.core import stop
from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.scans import ScanStatus, set_status
from pipelines.metadata.tables import Scan, VersionRow
from pipelines.versions.build import BuildResult, build, rebuild
from pipelines.versions.catalog import UNCOMMENTED
from pipelines.versions.change import change_versions
from pipelines.versions.stores import Stores as RealStores
from tests.versions.homes import BEGIN, Reading, Stores, add_run, read, usage
from tests.warehouse.versions import full_disk

NEWEST_FINDINGS = """
SELECT reported.code FROM meta.load_findings AS reported
JOIN meta.freshness AS freshness ON freshness.last_scan_id = reported.scan_id
"""
ALL = usage(*range(1, 11))
FEW = usage(1, 2)


def decide(stores: Stores, status: ScanStatus, scan_id: str) -> None:
    row = stores.decision(status, scan_id, "checked")
    row.details = {"rows": 2}
    with stores.metadata.transaction() as session:
        add_decision(session, row)
    stores.set_status(scan_id, status)


@contextmanager
def damaged(stores: Stores, scan_id: str, *, is_lost: bool = False) -> Iterator[None]:
    with stores.metadata.transaction() as session:
        file = stores.archive.folder / session.get_one(Scan, scan_id).file
    content = file.read_bytes()
    changed = bytearray(content)
    changed[len(changed) // 3] ^= 0xFF
    file.write_bytes(changed)
    if is_lost:
        file.unlink()
    yield
    file.write_bytes(content)


def test_a_build_loads_what_the_base_does_not_hold(stores: Stores) -> None:
    assert build(stores).version is None
    assert rebuild(stores).version is None
    running = add_run(stores, outcome=None)
    read(stores, Reading([{"id": "p1"}], stream="partners"), running)
    first = read(stores, Reading(usage(1, 2, 3)))
    built = build(stores)
    assert built.is_new
    assert [result.scan_id for result in built.results] == [first]
    assert stores.keys() == ["u1", "u2", "u3"]
    again = build(stores)
    assert (again.is_new, again.version) == (False, built.version)
    read(stores, Reading(usage(1, 2, 3, 4)))
    read(stores, Reading([{"id": "b1"}], stream="not_configured_any_more", connection="zen"))
    assert build(stores).is_new
    assert stores.keys() == ["u1", "u2", "u3", "u4"]
    assert stores.keys(stream="not_configured_any_more") == ["b1"]
    assert stores.versions() == {1: "published", 2: "published"}


def test_a_list_that_is_held_holds_back_no_other_and_is_not_tried_again(published: Stores) -> None:
    held = read(published, Reading(FEW))
    loaded = read(published, Reading([{"id": "b1"}], stream="billing"))
    assert build(published).is_new
    assert (len(published.keys()), published.keys(stream="billing")) == (10, ["b1"])
    statuses = published.statuses()
    assert (statuses[held], statuses[loaded]) == (ScanStatus.HELD, ScanStatus.SEALED)
    again = build(published)
    assert (again.is_new, again.results) == (False, ())


def build_beside_another(stores: RealStores) -> BuildResult:
    """Build; another process then decides about what was held."""
    built = build(stores)
    for each in built.results:
        with stores.metadata.transaction() as session:
            set_status(session, each.scan_id, ScanStatus.REJECTED)
    return built


def test_a_sync_whose_scan_was_held_needs_attention_whatever_became_of_it(
    published: Stores,
) -> None:
    read(published, Reading(FEW))
    synced = after_reading(published, build_beside_another)
    assert {each.severity for each in synced.findings} == {"info"}
    assert synced.exit_code == ExitCode.NEEDS_ATTENTION


def test_meta_says_what_a_version_is_made_of_and_everything_has_a_comment(stores: Stores) -> None:
    odd = {"id": "b", "at": "2026-11-01T00:00:00+02:00", "it's\0": 1, "lists": [{"of": [{"n": 1}]}]}
    read(stores, Reading([odd], stream="billing"))
    scan = read(stores, Reading(usage(1, 2, 3)))
    build(stores)
    partial = read(stores, Reading(usage(1), complete=False))
    build(stores)
    fresh = "SELECT last_scan_id, last_scan_complete, last_complete_scan_id, rows, "
    fresh += "age_minutes = date_diff('minute', last_complete_at, now()) FROM meta.freshness "
    fresh += "WHERE stream = 'usage'"
    assert stores.rows(fresh) == [(partial, False, scan, 3, True)]
    proof = "SELECT sentence FROM meta.completeness WHERE stream = 'usage' ORDER BY started_at"
    assert [text[:15] for (text,) in stores.rows(proof)] == ["usage: COMPLETE", "usage: PARTIAL."]
    traced = """
        SELECT history.id, requests.requested_offset, requests.status, requests.rows, history._row
        FROM history.usage AS history
        JOIN meta.requests AS requests
            ON requests.scan_id = history._scan_id AND requests.page = history._page
        ORDER BY history.id
    """
    assert stores.rows(traced) == [("u1", 0, 200, 2, 0), ("u2", 0, 200, 2, 1), ("u3", 2, 200, 1, 0)]
    versions = "SELECT number, status, base FROM meta.versions ORDER BY number"
    assert stores.rows(versions) == [(1, "published", None), (2, "building", 1)]
    assert stores.rows("SELECT count(*), min(outcome) FROM meta.runs") == [(3, "complete")]
    bare = f"SELECT * FROM ({UNCOMMENTED}) WHERE kind <> 'MACRO TABLE'"
    assert stores.rows(bare) == []
    assert stores.rows(bare.replace("IS NULL", "= ''")) == []  # a column of ours
    macros = "FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal"
    assert stores.rows(f"SELECT count(*), count(nullif(comment, '')) {macros}") == [(5, 5)]


@pytest.mark.long
def test_a_scan_that_cannot_be_loaded_holds_back_no_other_and_a_rebuild_tries_it_again(
    published: Stores,
) -> None:
    base = published.warehouse.published()
    bad = read(published, Reading(usage(*range(1, 12))))
    with damaged(published, bad):
        built = build(published)
        assert (built.version, built.is_new, list(built.failed)) == (base, False, [bad])
        assert built.failed[bad].startswith("Scan file")
    later = read(published, Reading(usage(*range(1, 13))))
    good = read(published, Reading([{"id": "b1"}], stream="billing"))
    with damaged(published, bad), damaged(published, later, is_lost=True):
        built = build(published)
        assert list(built.failed) == [later]
        assert [result.scan_id for result in built.results] == [good]
        assert build(published).is_new is False
        assert (len(published.keys()), published.keys(stream="billing")) == (10, ["b1"])
        assert list(rebuild(published).failed) == [bad, later]
        assert {published.statuses()[scan] for scan in (bad, later)} == {"failed"}
    rebuilt = rebuild(published)  # their files were restored
    assert (len(rebuilt.results), rebuilt.failed, len(published.keys())) == (4, {}, 12)
    assert {published.statuses()[scan] for scan in (bad, later)} == {"sealed"}


def test_nothing_is_built_on_a_file_that_was_lost_or_changed(published: Stores) -> None:
    (lost,) = published.warehouse.versions()
    lost.path.unlink()
    with pytest.raises(PartnerSyncError, match="does not exist"):
        build(published)
    changed = rebuild(published).version
    assert changed is not None
    changed.path.chmod(0o644)
    with changed.path.open("ab") as file:
        file.write(b"x")
    read(published, Reading(usage(1)))
    with pytest.raises(PartnerSyncError, match="Version 2 was changed after it was published"):
        build(published)
    *_others, few = rebuild(published).results
    assert (few.held is None, len(published.keys())) == (False, 10)  # one row of ten


def test_a_rebuild_holds_what_the_published_version_holds_or_is_refused(published: Stores) -> None:
    held = read(published, Reading(FEW))
    build(published)
    decide(published, ScanStatus.APPROVED, held)
    base = build(published).version
    assert base is not None
    decided = published.rows("SELECT kind, subject, reason, details FROM meta.decisions")
    assert decided == [("approved", held, "checked", '{"rows": 2}')]
    waiting = read(published, Reading([{"id": "b1"}], stream="billing"))
    failure = rf"Scan {held} of acme/usage \(2026-11-03\) cannot be"
    with damaged(published, held), pytest.raises(PartnerSyncError, match=failure):
        rebuild(published)
    assert published.warehouse.published() == base
    assert set(published.statuses().values()) == {"sealed", "approved"}
    queries = (
        "SELECT _key, _valid_from, _valid_to, _end_reason FROM history.usage ORDER BY ALL",
        "SELECT * FROM meta.requests WHERE scan_id LIKE 'usage%' ORDER BY ALL",
    )
    before = [published.rows(query) for query in queries]
    assert rebuild(published).results[-1].scan_id == waiting
    assert [published.rows(query) for query in queries] == before
    assert not build(published).is_new


@pytest.mark.long
def test_a_version_says_when_rows_of_each_connection_were_written(stores: Stores) -> None:
    def publish(connection: str, amount: str = "1.10") -> dict[str, int]:
        read(stores, Reading(usage(1, 2, amount=amount), connection=connection))
        build(stores)
        return written()

    def written() -> dict[str, int]:
        return dict(stores.rows("SELECT connection, version FROM meta.connections"))

    assert publish("acme") == {"acme": 1}
    assert publish("zen") == {"acme": 1, "zen": 2}
    assert publish("acme", "1.20") == {"acme": 3, "zen": 2}
    assert publish("zen") == {"acme": 3, "zen": 4}  # how its list ended is a row, too
    # The column has more digits behind the point, in every row.
    assert publish("zen", "1.234") == {"acme": 5, "zen": 5}
    rebuild(stores)
    assert written() == {"acme": 6, "zen": 6}


def is_inside_a_statement(error: BaseException | None) -> bool:
    """Return whether an error came from a statement that was ended."""
    while error is not None and not isinstance(error, duckdb.InterruptException):
        error = error.__cause__ or error.__context__
    return error is not None


def test_a_build_that_is_stopped_marks_no_scan_as_failed_and_publishes_nothing(
    published: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pipelines")
    milliseconds, inside = count(1), False

    class StopSoon(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            signal.setitimer(signal.ITIMER_REAL, next(milliseconds) % 50 / 1000 + 0.001)

    log, handler = logging.getLogger("pipelines"), StopSoon(logging.INFO)
    log.addHandler(handler)
    try:
        while not inside:
            read(published, Reading(usage(*range(1, 1500)), page_size=500))
            before = published.warehouse.published()
            with stop.noted(signal.SIGALRM):
                try:
                    build(published)
                except KeyboardInterrupt as error:
                    inside = is_inside_a_statement(error)
                    assert published.warehouse.published() == before
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        log.removeHandler(handler)
    assert "failed" not in published.statuses().values()
    build(published)
    assert len(published.keys()) == 1499


def test_that_most_rows_changed_is_said_if_a_scan_without_changes_is_loaded_with_it(
    published: Stores,
) -> None:
    many = range(1, 201)
    read(published, Reading(usage(*many)))
    build(published)
    for _ in range(2):
        read(published, Reading(usage(*many, amount="2.20")))
    assert [result.changed for result in build(published).results] == [200, 0]
    (reported,) = published.rows(NEWEST_FINDINGS)
    assert reported[0] == "rows_changed"


def test_a_full_disk_is_not_the_fault_of_a_scan(published: Stores) -> None:
    (base,) = published.warehouse.versions()
    noise = Random(1)  # which nothing compresses
    records = [{"id": f"w{number}", "text": noise.randbytes(30_000).hex()} for number in range(80)]
    scan = read(published, Reading([*ALL, *records]))
    with (
        full_disk(largest_file=base.path.stat().st_size),
        pytest.raises(
            PartnerSyncError, match=r"Version 2 cannot be .*too large|Could not write"
        ) as found,
    ):
        build(published)
    assert "Make room" in found.value.remedy
    assert published.warehouse.published() == base
    assert published.statuses()[scan] == "sealed"
    assert build(published).is_new  # after room was made
    assert len(published.keys()) == 90


def test_rows_of_versions_follow_the_files(published: Stores) -> None:
    (version,) = published.warehouse.versions()
    with published.metadata.transaction() as session:
        row = session.get_one(VersionRow, 1)
        row.status, row.sha256 = "building", None  # as killed after the link was swapped
    for number in (2, 3, 5):  # 2 is of a killed build, 3 was deleted, 5 is newer than the rows
        shutil.copyfile(version.path, version.path.with_name(f"v{number:08}.duckdb"))
    shutil.copyfile(version.path, version.path.with_name(".v00000006.building"))
    version.path.with_name(".v00000006.building.spill").mkdir()
    with published.metadata.transaction() as session:
        for number, status in ((2, "building"), (3, "deleted"), (4, "published"), (6, "building")):
            session.add(VersionRow(number=number, status=status, created_at=BEGIN))
    with change_versions(published):
        gone = dict.fromkeys((2, 3, 6), "deleted")
        there = dict.fromkeys((1, 5), "published")
        assert published.versions() == there | gone | {4: "lost"}
    read(published, Reading(usage(*range(1, 12))))
    built = build(published)
    assert built.version is not None
    assert built.version.number == 7
    kept = dict.fromkeys((1, 5, 7), "published")
    assert published.versions() == kept | gone | {4: "lost"}
    names = sorted(path.name for path in version.path.parent.iterdir())
    assert names == [f"v{number:08}.duckdb" for number in (1, 5, 7)]
    with published.metadata.transaction() as session:
        assert all(session.get_one(VersionRow, number).sha256 for number in (1, 5, 7))
