"""Damaged scan files: a cut end is resumed, everything else is detected and named."""

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipelines.archive.scan_file import OpenScan, SealedScan, open_path
from pipelines.core.errors import ArchiveDamaged
from tests.archive.scans import exchange, page, proof, written

EXCHANGES = [
    exchange(page(b'{"id": 1, "text": "one"}', b'{"id": 2}')),
    exchange(None, 2, 429),
    exchange(b"\xff\x00", 3, 500),
    exchange(page(*(b'{"id": %d}' % number**9 for number in range(30))), 4),
]
NUMBERED = [replace(each, page=page) for page, each in enumerate(EXCHANGES, 1)]


class Files:
    """One scan as an open and as a sealed file, and where the lines of the open one end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scan.jsonl.zst"
        scan = written(self.path, [])
        self.ends = [scan._last.end]
        for each in EXCHANGES:
            scan.append(each)
            self.ends.append(scan._last.end)
        self.open = open_path(self.path).read_bytes()
        scan.seal(proof())
        self.sealed = self.path.read_bytes()

    def resume(self, content: bytes) -> OpenScan:
        self.path.unlink(missing_ok=True)
        open_path(self.path).write_bytes(content)
        return OpenScan.resume(self.path)

    def check_byte(self, position: int, mask: int) -> None:
        """Check what happens if this byte and all after it are lost, or if it is changed."""
        damaged = self.sealed[:position]
        self.path.write_bytes(damaged)
        with pytest.raises(ArchiveDamaged, match="is damaged"):
            SealedScan.open(self.path)
        if position < self.ends[0]:
            with pytest.raises(ArchiveDamaged, match=r"page 0 \(byte 0\)"):
                self.resume(damaged)
        else:
            self.check_resumed(damaged)
        flipped = bytes([self.sealed[position] ^ mask])
        self.path.write_bytes(damaged + flipped + self.sealed[position + 1 :])
        with pytest.raises(ArchiveDamaged, match=r"scan\.jsonl\.zst is damaged: "):
            SealedScan.open(self.path)
        if self.ends[-2] <= position < len(self.open):  # only the last line may be cut off
            scan = self.resume(damaged + flipped + self.open[position + 1 :])
            assert list(scan.exchanges()) == NUMBERED[:-1]
        elif position < len(self.open):
            number = sum(end <= position for end in self.ends)
            where = f"page {number} (byte {[0, *self.ends][number]}) "
            with pytest.raises(ArchiveDamaged, match=re.escape(where)):
                self.resume(damaged + flipped + self.open[position + 1 :])

    def check_resumed(self, content: bytes) -> None:
        """Check that a scan goes on with the exchanges that are whole."""
        scan = self.resume(content)
        whole = sum(end <= len(content) for end in self.ends[1:])
        assert list(scan.exchanges()) == NUMBERED[:whole]
        for each in EXCHANGES[whole:]:
            scan.append(each)
        scan.seal(proof())
        assert self.path.read_bytes() == self.sealed


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("archive"))


@pytest.mark.parametrize("share", [0.02, pytest.param(1, marks=pytest.mark.long)])
def test_any_byte_can_be_lost_or_damaged(files: Files, share: float) -> None:
    chance = random.Random(1)
    for position in range(len(files.sealed)):
        if chance.random() < share:
            files.check_byte(position, 1 << chance.randrange(8))


def test_lines_in_another_order_missing_or_without_a_seal_are_detected(files: Files) -> None:
    first, second, third = files.ends[:3]
    begin, one, two, rest = (
        files.open[at:end] for at, end in pairwise((0, first, second, third, len(files.open)))
    )
    for content in (begin + two + one + rest, begin + two + rest):
        with pytest.raises(ArchiveDamaged, match="page 1 "):
            files.resume(content)
    for content in (files.open, files.sealed + b"x", files.sealed + files.open):
        files.path.write_bytes(content)
        with pytest.raises(ArchiveDamaged, match=r"it has no seal at its end|page 6 "):
            SealedScan.open(files.path)


def test_a_file_that_is_replaced_after_it_was_opened_is_detected(files: Files) -> None:
    files.path.write_bytes(files.sealed)
    sealed = SealedScan.open(files.path)
    changed = files.sealed[: files.ends[3] + 50] + b"\x00" + files.sealed[files.ends[3] + 51 :]
    cases = [(changed, f"page 4 (byte {files.ends[3]})"), (files.open, "its end is missing")]
    for content, words in [*cases, (b"", "page 0 "), (None, "it cannot be read")]:
        files.path.unlink()
        if content is not None:
            files.path.write_bytes(content)
        with pytest.raises(ArchiveDamaged, match=re.escape(words)):
            list(sealed.exchanges())
