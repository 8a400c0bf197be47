"""Scan files: what is written comes back; who may read them; full disks; killed writers."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipelines.archive.archive import Archive, scan_row
from pipelines.archive.lines import Exchange
from pipelines.archive.scan_file import OpenScan, SealedScan, damage_named, open_path
from pipelines.core.errors import ArchiveDamaged, StorageFailed
from tests.archive.scans import BODIES, EXCHANGES, HEADER, exchange, json_lines, proof, written
from tests.warehouse.versions import full_disk


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@given(exchanges=st.lists(EXCHANGES, max_size=4), body=BODIES)
@settings(max_examples=30)
def test_every_exchange_comes_back(
    folder: Path, exchanges: list[Exchange], body: bytes | None
) -> None:
    stop = replace(exchange(None, status=None), ask=None, purpose="stop", error="time is up")
    path, exchanges = folder / "scan.jsonl.zst", [*exchanges, stop, exchange(body)]
    numbered = [replace(each, page=page) for page, each in enumerate(exchanges, 1)]
    scan = written(path, exchanges)
    assert scan.rate_limited == sum(each.status == 429 for each in exchanges)
    assert scan.requests == len(exchanges) - 1
    assert list(scan.exchanges()) == numbered
    completeness, contents = proof({1: ((0, 2),)}, {2: ((1, 1),)}), []
    for _ in range(2):  # the second time, nobody had recorded that the scan was sealed
        scan = OpenScan.resume(path)
        assert not path.exists()
        assert (scan.requests, scan.rate_limited) == (0, 0)
        assert (scan.header, list(scan.exchanges())) == (HEADER, numbered)
        sealed = scan.seal(completeness)
        assert sealed == SealedScan.open(path)
        assert (sealed.header, sealed.completeness) == (HEADER, completeness)
        assert list(sealed.exchanges()) == numbered
        assert [each.body for each in sealed.exchanges()][-1] == body
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    found = json_lines(path)
    kinds = ["header", *["exchange"] * len(exchanges), "seal"]
    assert [line["line"] for line in found] == kinds
    assert [line["page"] for line in found[1:-1]] == [each.page for each in numbered]
    path.unlink()


def test_a_page_keeps_its_bytes_and_other_bodies_are_text(tmp_path: Path) -> None:
    path = tmp_path / "scan.jsonl.zst"
    bodies = [b'{"id": "x", "a":0.10}', b'{"a":\n1}', b'{"a":NaN}', b"\xff", b"", None]
    written(path, [exchange(body) for body in bodies]).seal(proof())
    found = [line["body"] for line in json_lines(path)[1:-1]]
    assert found == [{"id": "x", "a": 0.1}, '{"a":\n1}', '{"a":NaN}', "\xff", "", None]


def test_a_file_of_another_user_is_not_called_damaged(tmp_path: Path) -> None:
    file = tmp_path / "scan"
    with pytest.raises(ArchiveDamaged, match="This user may not read") as found, damage_named(file):
        raise PermissionError(13, "Permission denied")
    assert "damaged" not in str(found.value)


def test_a_full_disk_leaves_what_was_written(tmp_path: Path) -> None:
    path, copy = tmp_path / "scan.jsonl.zst", tmp_path / "copy.jsonl.zst"
    scan = written(path, [exchange(b"{}")])
    large, size = exchange(os.urandom(10_000), 2), open_path(path).stat().st_size
    for room, write in ((2000, lambda: scan.append(large)), (100, lambda: scan.seal(proof()))):
        refused = pytest.raises(StorageFailed, match=r"cannot be written: .* already is kept")
        with full_disk(size + room), refused:
            write()
        shutil.copy(open_path(path), open_path(copy))
        assert [each.body for each in OpenScan.resume(copy).exchanges()] == [b"{}"]
    assert scan.append(exchange(b"[]", 2)) == 2
    assert [each.body for each in scan.seal(proof()).exchanges()] == [b"{}", b"[]"]


def test_files_are_private_and_opened_by_their_rows(tmp_path: Path) -> None:
    archive, row = Archive(tmp_path / "archive"), scan_row(HEADER)
    path = archive.folder / "acme" / "usage" / "20261001T235958-00000001.jsonl.zst"
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        archive.resume(row)
    with pytest.raises(ArchiveDamaged, match="No such file"):
        archive.open_sealed(row)
    archive.create(HEADER)
    for _ in ("open", "sealed"):
        (file,) = path.parent.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        if file != path:
            archive.resume(row).seal(proof())
    assert archive.open_sealed(row).path == path
    folders = [path.parent, path.parent.parent, archive.folder]
    assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}
