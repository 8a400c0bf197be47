"""Damaged scan files: a cut end is resumed, everything else is detected and named."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.archive.scan_file import OpenScan, SealedScan, open_path
from pipelines.core.errors import ArchiveDamaged
from tests.archive.scans import exchange, numbered, page, proof, written

EXCHANGES = [
    exchange(page({"id": 1, "text": "one"}, {"id": 2})),
    exchange(None, 2, 429),
    exchange(b"\xff\x00", 3, 500),
    exchange(page(*({"id": number, "x": number**9} for number in range(30))), 4),
]
NUMBERED = numbered(EXCHANGES)


class Files:
    """One scan as an open and as a sealed file, and where the frames of the open one end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scan.jsonl.zst"
        scan = written(self.path, [])
        self.ends = [scan._bounds[-1]]
        for each in EXCHANGES:
            scan.append(each)
            self.ends.append(scan._bounds[-1])
        self.open = open_path(self.path).read_bytes()
        scan.seal(proof())
        self.sealed = self.path.read_bytes()

    def whole_exchanges(self, size: int) -> int:
        """Return how many exchanges are whole in so many bytes."""
        return sum(end <= size for end in self.ends[1:])

    def resume(self, content: bytes) -> OpenScan:
        self.path.unlink(missing_ok=True)
        open_path(self.path).write_bytes(content)
        return OpenScan.resume(self.path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("archive"))


def check_truncated(files: Files, content: bytes, size: int) -> None:
    if size < len(files.sealed):
        files.path.write_bytes(content[:size])
        with pytest.raises(ArchiveDamaged, match="is damaged"):
            SealedScan.open(files.path)
    if size < files.ends[0]:
        with pytest.raises(ArchiveDamaged, match="header is not whole"):
            files.resume(content[:size])
        return
    scan = files.resume(content[:size])
    whole = files.whole_exchanges(size)
    assert list(scan.exchanges()) == NUMBERED[:whole]
    for each in EXCHANGES[whole:]:
        scan.append(each)
    scan.seal(proof())
    assert files.path.read_bytes() == files.sealed


def check_flipped_while_open(files: Files, position: int, mask: int) -> None:
    content = bytearray(files.open)
    content[position] ^= mask
    try:
        scan = files.resume(bytes(content))
    except ArchiveDamaged:
        return
    found = list(scan.exchanges())
    scan.close()
    # A bit that zstd ignores loses nothing, one in the last frame only that.
    assert found == NUMBERED or (position >= files.ends[-2] and found == NUMBERED[:-1])


def check_flipped_when_sealed(files: Files, position: int, mask: int) -> None:
    content = bytearray(files.sealed)
    content[position] ^= mask
    files.path.write_bytes(content)
    with pytest.raises(ArchiveDamaged, match=r"scan\.jsonl\.zst is damaged: "):
        SealedScan.open(files.path).verify()


@given(data=st.data())
@settings(max_examples=30)
def test_a_truncated_file_resumes_to_a_prefix(files: Files, data: st.DataObject) -> None:
    content = data.draw(st.sampled_from([files.open, files.sealed]))
    check_truncated(files, content, data.draw(st.integers(0, len(content))))


@given(data=st.data(), mask=st.integers(1, 255))
@settings(max_examples=30)
def test_damage_in_an_open_file_is_not_a_short_file(
    files: Files, data: st.DataObject, mask: int
) -> None:
    check_flipped_while_open(files, data.draw(st.integers(0, len(files.open) - 1)), mask)


@given(data=st.data(), mask=st.integers(1, 255))
@settings(max_examples=30)
def test_damage_in_a_sealed_file_is_detected(files: Files, data: st.DataObject, mask: int) -> None:
    check_flipped_when_sealed(files, data.draw(st.integers(0, len(files.sealed) - 1)), mask)


@pytest.mark.long
def test_every_byte_can_be_lost_or_damaged(files: Files) -> None:
    masks = random.Random(1)
    for position in range(len(files.sealed)):
        check_truncated(files, files.sealed, position)
        check_flipped_when_sealed(files, position, 1 << masks.randrange(8))
        if position < len(files.open):
            check_flipped_while_open(files, position, 1 << masks.randrange(8))


def test_damage_names_page_and_offset(files: Files) -> None:
    content = bytearray(files.sealed)
    content[files.ends[3] + 20] ^= 1
    files.path.write_bytes(content)
    sealed = SealedScan.open(files.path)
    assert sealed.page(3) == b"\xff\x00"
    for read in (sealed.verify, lambda: sealed.page(4), lambda: list(sealed.exchanges())):
        with pytest.raises(ArchiveDamaged, match=rf"page 4 \(byte {files.ends[3]}\)"):
            read()


def test_frames_in_another_order_or_missing_are_detected(files: Files) -> None:
    first, second, third = files.ends[:3]
    swapped = files.open[:first] + files.open[second:third] + files.open[first:second]
    for content in (swapped, files.open[:first] + files.open[second:]):
        with pytest.raises(ArchiveDamaged, match=r"page 1 .*: page 2 is found in its place"):
            files.resume(content)


def test_a_replaced_file_is_detected(files: Files) -> None:
    files.path.write_bytes(files.sealed)
    sealed = SealedScan.open(files.path)
    files.path.write_bytes(b"")
    for read in (sealed.verify, lambda: list(sealed.exchanges())):
        with pytest.raises(ArchiveDamaged):
            read()
    files.path.unlink()
    for read in (sealed.verify, lambda: list(sealed.exchanges())):
        with pytest.raises(ArchiveDamaged, match="cannot be read"):
            read()
