"""Frames of a scan file: one zstd frame for each line, and a trailer that finds the last one."""

import re
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple

import zstandard

LEVEL = 1  # 1.1 ms for a page of 500 records, 276 KB become 52 KB; higher levels gain little
MAGIC = re.compile(re.escape(b"\x28\xb5\x2f\xfd"))
CHUNK = 2**18
# A skippable frame, which every zstd reader passes over: magic, length of the rest, start of the
# seal's frame, SHA-256 of all that is before the digest.
TRAILER = struct.Struct("<IIQ32s")
TRAILER_HEAD = 0x184D2A50, TRAILER.size - 8
DIGEST_SIZE = 32


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


def whole_frames(source: BinaryIO) -> Iterator[Frame]:
    """Read frames from the beginning up to the first that is damaged or not whole."""
    start = 0
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


def any_whole_frame(tail: bytes) -> bool:
    """Return whether a whole frame begins somewhere behind the first byte of a file's end."""
    starts = (match.start() for match in MAGIC.finditer(tail, 1))
    return any(next(whole_frames(BytesIO(tail[start:])), None) for start in starts)


def pack_trailer(start: int) -> bytes:
    """Return the trailer of a file whose seal's frame begins at `start`, up to the digest."""
    return TRAILER.pack(*TRAILER_HEAD, start, b"")[:-DIGEST_SIZE]


def read_seal_frame(source: BinaryIO) -> tuple[Frame, bytes]:
    """Return the frame of the seal and the digest of the file. Raises ValueError."""
    end = max(0, source.seek(0, 2) - TRAILER.size)
    source.seek(end)
    trailer = source.read()
    if len(trailer) < TRAILER.size:
        raise ValueError("it is too short for a sealed scan")
    *head, start, digest = TRAILER.unpack(trailer)
    if tuple(head) != TRAILER_HEAD or start > end:
        raise ValueError("it has no seal at its end")
    source.seek(start)
    return Frame(start, end, decompress(source.read(end - start))), digest
