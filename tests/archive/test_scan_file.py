"""Scan files: what is written comes back; who may read them; full disks; killed writers."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.archive.scan_file import Exchange, OpenScan, SealedScan, open_path
from pipelines.archive.store import Archive, scan_row
from pipelines.core.completeness import Completeness
from pipelines.core.errors import ArchiveDamaged, ScanNotFound, StorageFailed
from tests.archive.scans import (
    EXCHANGES,
    HEADER,
    exchange,
    json_lines,
    numbered,
    page,
    proof,
    written,
)

NAME = "scan.jsonl.zst"
LISTS = st.lists(EXCHANGES, max_size=4)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def round_trip(folder: Path, exchanges: list[Exchange], completeness: Completeness) -> None:
    path = folder / NAME
    scan = written(path, exchanges)
    assert list(scan.exchanges()) == numbered(exchanges)
    scan.close()
    resumed = OpenScan.resume(path)
    assert resumed.header == HEADER
    assert list(resumed.exchanges()) == numbered(exchanges)
    sealed = resumed.seal(completeness)
    assert sealed == SealedScan.open(path)
    assert (sealed.header, sealed.completeness) == (HEADER, completeness)
    assert list(sealed.exchanges()) == numbered(exchanges)
    assert sealed.rate_limited == sum(each.status == 429 for each in exchanges)
    sealed.verify()
    found = json_lines(path)
    assert [line.get("page") for line in found] == [None, *range(1, len(exchanges) + 1), None]
    assert "header" in found[0]
    assert "seal" in found[-1]
    path.unlink()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@given(exchanges=LISTS)
@settings(max_examples=30)
def test_every_exchange_comes_back(folder: Path, exchanges: list[Exchange]) -> None:
    round_trip(folder, exchanges, proof({1: ((0, 2),)}, {2: ((1, 1),)}))


def test_a_page_keeps_its_bytes_and_others_are_text_or_base64(tmp_path: Path) -> None:
    path = tmp_path / NAME
    bodies = [b'{"id": "x", "a":0.10}', b'{"a":\n1}', b'{"a":NaN}', b"\xff", b"", None]
    written(path, [exchange(body) for body in bodies]).seal(proof())
    found = json_lines(path)[1:-1]
    kinds = [[kind for kind in ("body", "text", "base64") if kind in line] for line in found]
    assert kinds == [["body"], ["text"], ["text"], ["base64"], ["text"], []]
    assert [list(line)[-1] for line in found][:3] == ["body", "text", "text"]
    rows = duckdb.sql(
        f"""
        SELECT lines.page, lines.sha256, lines.body ->> 'id'
        FROM read_json('{path}', format = 'newline_delimited', columns = {{
            page: 'INTEGER', sha256: 'VARCHAR', body: 'JSON'
        }}) AS lines
        WHERE lines.page = 1
        """
    ).fetchall()
    assert rows == [(1, found[0]["sha256"], "x")]


def test_pages_are_those_that_hold_rows_which_count(tmp_path: Path) -> None:
    exchanges = [
        exchange(page({"id": 1}, {"id": 2})),
        exchange(None, 2, 429),
        exchange(b"never used", 3),
        exchange(page({"id": 2}, {"id": 2, "x": 1}), 4),
    ]
    completeness = proof({1: ((0, 2),)}, {4: ((1, 2),)})
    sealed = written(tmp_path / NAME, exchanges).seal(completeness)
    assert [tuple(each) for each in sealed.pages()] == [
        (1, [b'{"id": 1}', b'{"id": 2}'], ((0, 2),), ()),
        (4, [b'{"id": 2}', b'{"id": 2, "x": 1}'], (), ((1, 2),)),
    ]
    assert sealed.page(3) == b"never used"
    assert sealed.rate_limited == 1
    for number, reason in ((0, "has no page 0"), (5, "has no page 5"), (2, "got no page")):
        with pytest.raises(ScanNotFound, match=reason):
            sealed.page(number)


def test_a_full_disk_leaves_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / NAME
    scan = written(path, [exchange(b"{}")])
    size = open_path(path).stat().st_size
    with largest_file(size + 100):
        with pytest.raises(StorageFailed, match="Cannot write scan file"):
            scan.append(exchange(os.urandom(1000), 2))
        with pytest.raises(StorageFailed, match="pages before are kept"):
            scan.seal(proof())
    assert open_path(path).stat().st_size == size
    assert scan.append(exchange(b"[]", 2)) == 2
    sealed = scan.seal(proof())
    assert [each.body for _, each in sealed.exchanges()] == [b"{}", b"[]"]


@pytest.mark.parametrize("renamed", [False, True])
def test_a_seal_that_was_not_recorded_is_cut_off(tmp_path: Path, *, renamed: bool) -> None:
    path = tmp_path / NAME
    exchanges = [exchange(b"{}"), exchange(b"[]", 2)]
    written(path, exchanges).seal(proof())
    content = path.read_bytes()
    if not renamed:
        path.rename(open_path(path))
    scan = OpenScan.resume(path)
    assert not path.exists()
    assert list(scan.exchanges()) == numbered(exchanges)
    scan.seal(proof())
    assert path.read_bytes() == content


def test_files_are_private_and_opened_by_their_rows(tmp_path: Path) -> None:
    archive, row = Archive(tmp_path / "archive"), scan_row(HEADER)
    path = archive.folder / "acme" / "usage" / "20261001T235958-00000001.jsonl.zst"
    with pytest.raises(ArchiveDamaged, match="cannot be read"):
        archive.resume(row)
    with pytest.raises(ScanNotFound, match="has no file"):
        archive.open_sealed(row)
    archive.create(HEADER).close()
    assert stat.S_IMODE(open_path(path).stat().st_mode) == 0o600
    with pytest.raises(StorageFailed, match="exists already"):
        archive.create(HEADER)
    archive.resume(row).seal(proof())
    with pytest.raises(StorageFailed, match="exists already"):
        archive.create(HEADER)
    assert archive.open_sealed(row).path == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folders = [path.parent, path.parent.parent, archive.folder]
    assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}
    for _ in range(2):
        archive.delete(row)
        assert not path.exists()
