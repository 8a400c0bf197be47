"""Lines of a scan file: the header, one line for each exchange, the seal; compressed in frames."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from pipelines.core.completeness import Completeness, ListMemory, ReadBudget

LEVEL = 1  # 1.1 ms for a page of 500 records, 276 KB become 52 KB; higher levels gain little
# A skippable frame, which every zstd reader passes over. It holds the size of the line's frame that
# follows, and the SHA-256 of the digest before and that frame.
HEAD = struct.Struct("<8sI32s")
HEAD_BEGINS = struct.pack("<II", 0x184D2A50, HEAD.size - 8)
SEAL_BEGINS = b'{"line":"seal"'


class ScanHeader(msgspec.Struct, frozen=True, tag_field="line", tag="header"):
    """Line 1: all that a resumed read needs, so that later settings do not matter."""

    scan_id: str
    run_id: str
    connection: str
    stream: str
    path: str
    actor: str
    started_at: datetime
    day: date
    configured_key: str | None
    memory: ListMemory
    budget: ReadBudget
    algorithm: int


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what came of it.

    `ask` numbers the Ask (from 1) that used the answer; None if nobody did. `sent` and `received`
    are event counters. `body` is the answer exactly as received. `error` says why there is no page.
    The purpose "stop" records that reading was stopped, with the reason in `error`.
    """

    ask: int | None
    sent: int
    received: int
    offset: int
    limit: int
    purpose: str
    status: int | None
    sent_at: datetime
    received_at: datetime
    request_id: str | None
    headers: dict[str, str]
    error: str | None = None
    body: bytes | None


class _ExchangeLine(Exchange, frozen=True, kw_only=True, tag_field="line", tag="exchange"):
    page: int
    body: msgspec.Raw  # the answer as it is, or a string with a character for each byte, or null


class Seal(msgspec.Struct, frozen=True, tag_field="line", tag="seal"):
    """The last line. `rate_limited` counts the answers with status 429."""

    completeness: Completeness
    rate_limited: int


def exchange_line(page: int, exchange: Exchange) -> msgspec.Struct:
    """Return the line of an exchange. The bytes of a JSON body are copied, not escaped."""
    body = exchange.body
    if body is None or not _is_json_line(body):
        body = msgspec.json.encode(None if body is None else body.decode("latin-1"))
    values = msgspec.structs.asdict(exchange) | {"body": msgspec.Raw(body)}
    return _ExchangeLine(page=page, **values)


def read_exchange(line: bytes) -> Exchange:
    """Return the exchange of a line. Raises msgspec.DecodeError for another line."""
    values = msgspec.structs.asdict(msgspec.json.decode(line, type=_ExchangeLine))
    body, _page = bytes(values.pop("body")), values.pop("page")
    if not body.startswith(b"{"):
        text = msgspec.json.decode(body, type=str | None)
        return Exchange(body=None if text is None else text.encode("latin-1"), **values)
    return Exchange(body=body, **values)


def _is_json_line(body: bytes) -> bool:
    """Return whether a body is an object that any reader accepts as one line of JSON."""
    with suppress(ValueError, RecursionError, msgspec.DecodeError):
        body.decode()
        is_whole = bytes(msgspec.json.decode(body, type=msgspec.Raw)) == body
        return is_whole and body.startswith(b"{") and body.splitlines() == [body]
    return False


class Frame(NamedTuple):
    """One line in a scan file. The header is number 0, so exchanges are numbered from 1."""

    number: int
    end: int  # where the next frame begins
    digest: bytes  # of all frames up to this one
    data: bytes

    def followed_by(self, data: bytes) -> "Frame":
        """Return the next frame."""
        digest = hashlib.sha256(self.digest + data).digest()
        return Frame(self.number + 1, self.end + HEAD.size + len(data), digest, data)

    def line(self) -> bytes:
        """Return the line as JSON."""
        return zstandard.ZstdDecompressor().decompress(self.data)

    def head(self) -> bytes:
        """Return the skippable frame before the data."""
        return HEAD.pack(HEAD_BEGINS, len(self.data), self.digest)


START = Frame(-1, 0, b"", b"")


def compress(line: msgspec.Struct) -> bytes:
    """Return a line as the data of a frame."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    return compressor.compress(msgspec.json.encode(line) + b"\n")


def read_frames(source: BinaryIO) -> Iterator[Frame]:
    """Read frames, up to a broken one at the end.

    Raises ValueError where the first is broken, or others follow one that is.
    """
    last = START
    while True:
        head = source.read(HEAD.size)
        _, size, _ = HEAD.unpack(head.ljust(HEAD.size))
        frame = last.followed_by(source.read(size))
        if head != frame.head():
            break
        yield frame
        last = frame
    source.seek(last.end)
    if last is START or source.read().find(HEAD_BEGINS, 1) > 0:
        raise ValueError(f"page {last.number + 1} (byte {last.end}) is not what was written")
