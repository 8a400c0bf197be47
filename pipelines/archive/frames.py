"""Frames of a scan file: one zstd frame for each line, and a trailer that finds the last one."""

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import zstandard

LEVEL = 1  # 1.1 ms for a page of 500 records, 276 KB become 52 KB; higher levels gain little
MAGIC = b"\x28\xb5\x2f\xfd"
CHUNK = 2**18
# A skippable frame, which every zstd reader passes over: magic, length, start of the seal; then
# the SHA-256 of the seal's frame and of these three.
TRAILER = struct.Struct("<IIQ")
TRAILER_MAGIC = 0x184D2A50
DIGEST_SIZE = hashlib.sha256().digest_size
TRAILER_SIZE = TRAILER.size + DIGEST_SIZE
TRAILER_CONTENT = TRAILER_SIZE - 8  # bytes after magic and length


class Frame(NamedTuple):
    """One frame: where it begins and ends in the file, and the line in it."""

    start: int
    end: int
    line: bytes


def compress(line: bytes) -> bytes:
    """Return a line as a frame with a checksum."""
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(line)


def decompress(frame: bytes) -> bytes:
    """Return the line of a whole frame. Raises ValueError where the frame is damaged."""
    try:
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"the bytes are not a zstd frame ({error})") from None


def whole_frames(file: Path) -> Iterator[Frame]:
    """Read frames from the beginning up to the first that is damaged or not whole."""
    start = 0
    with file.open("rb") as source:
        data = source.read(CHUNK)
        while data:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            line, end = b"", start
            while not decompressor.eof:
                try:
                    line += decompressor.decompress(data)
                except zstandard.ZstdError:
                    return
                end += len(data)
                data = decompressor.unused_data or source.read(CHUNK)
                if not (data or decompressor.eof):
                    return
            end -= len(decompressor.unused_data)
            yield Frame(start, end, line)
            start = end


def any_frame_after(file: Path, offset: int) -> bool:
    """Return whether a whole frame with a line follows somewhere behind an offset."""
    with file.open("rb") as source:
        source.seek(offset)
        tail = source.read()
    position = tail.find(MAGIC, 1)
    while position >= 0:
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        try:
            line = decompressor.decompress(tail[position:])
        except zstandard.ZstdError:
            line = b""
        if decompressor.eof and line.endswith(b"}\n"):
            return True
        position = tail.find(MAGIC, position + 1)
    return False


def pack_trailer(seal_frame: bytes, start: int) -> bytes:
    """Return the trailer that follows the seal's frame, which begins at `start`."""
    head = TRAILER.pack(TRAILER_MAGIC, TRAILER_CONTENT, start)
    return head + hashlib.sha256(seal_frame + head).digest()


def read_seal_frame(file: Path) -> Frame:
    """Return the frame of the seal. Raises ValueError where it is missing or damaged."""
    with file.open("rb") as source:
        content_end = max(0, source.seek(0, 2) - TRAILER_SIZE)
        source.seek(content_end)
        trailer = source.read()
        head, digest = trailer[: TRAILER.size], trailer[TRAILER.size :]
        if len(trailer) < TRAILER_SIZE:
            raise ValueError("it is too short for a sealed scan")
        magic, length, start = TRAILER.unpack(head)
        if (magic, length) != (TRAILER_MAGIC, TRAILER_CONTENT) or start > content_end:
            raise ValueError("it has no seal at its end")
        source.seek(start)
        frame = source.read(content_end - start)
    if hashlib.sha256(frame + head).digest() != digest:
        raise ValueError("the digest of its seal does not match")
    return Frame(start, content_end, decompress(frame))
