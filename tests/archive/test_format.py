"""Scan files of earlier and later formats: members that one of them lacks, and a higher number."""

from pathlib import Path

import msgspec
import pytest

from pipelines.archive import lines, scan_file
from pipelines.archive.lines import Exchange, ScanHeader
from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.core.errors import NewerFormat
from pipelines.core.proof import Completeness
from tests.archive.scans import HEADER, exchange, page, proof, written


class LaterProof(Completeness, frozen=True, kw_only=True):
    later_figure: int | None = None  # not recorded


class LaterSeal(msgspec.Struct, frozen=True, tag_field="line", tag="seal"):
    completeness: LaterProof
    original: str | None = None


def add_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the proof in the seal have one more member."""
    monkeypatch.setattr(lines, "Line", ScanHeader | Exchange | LaterSeal)
    monkeypatch.setattr(scan_file, "Seal", LaterSeal)


def test_a_proof_of_before_a_member_was_added_says_that_it_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scan.jsonl.zst"
    sealed = written(path, [exchange(page(b'{"a":1}'))]).seal(proof({1: ((0, 1),)}))
    add_member(monkeypatch)
    later = SealedScan.open(path)
    assert later.completeness == LaterProof(**msgspec.structs.asdict(sealed.completeness))
    assert [each.records() for each in later.pages()] == [[b'{"a":1}']]


def test_a_member_that_is_not_known_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, known = tmp_path / "scan.jsonl.zst", proof()
    with monkeypatch.context() as later:
        add_member(later)
        written(path, []).seal(LaterProof(**msgspec.structs.asdict(known), later_figure=2))
    assert SealedScan.open(path).completeness == known


def test_a_file_without_a_number_has_format_1() -> None:
    members = msgspec.to_builtins(HEADER)
    assert members.pop("format") == lines.FORMAT
    frame = lines.START.followed_by(lines.zstd.compress(msgspec.json.encode(members)))
    assert frame.format() == 1
    assert frame.line() == msgspec.structs.replace(HEADER, format=1)


class LaterHeader(msgspec.Struct, tag_field="line", tag="header"):
    format: int = lines.FORMAT + 1


def test_a_file_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "scan.jsonl.zst"
    content = msgspec.json.encode(LaterHeader())
    frame = lines.START.followed_by(lines.zstd.compress(content)).content
    path.write_bytes(frame)
    said = f"{path} has format 2, and this partner-sync reads formats up to 1"
    with pytest.raises(NewerFormat, match=said):
        SealedScan.open(path)
    opened = path.rename(scan_file.open_path(path))
    with pytest.raises(NewerFormat):
        OpenScan.resume(path)
    assert opened.read_bytes() == frame
