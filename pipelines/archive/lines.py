"""Lines of a scan file: the header, one line for each exchange, the seal; compressed in frames.

Here: the format. Not here: the file on the disk (`scan_file.py`), and records in an answer
(`records.py`).
"""

import hashlib
import re
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from typing import BinaryIO, Final, NamedTuple

import msgspec
import zstandard
from msgspec.structs import replace

from pipelines.archive.records import (
    Digests,
    erase_records,
    join_digests,
    parse_page,
    split_digests,
)
from pipelines.core.proof import Completeness, ListTraits

# Purpose of a line that is no request.
STOP: Final = "stop"
# Of zstd. A page of 500 records: 0.6 ms, 290 KB become 45 KB; higher levels gain little.
LEVEL: Final = 1
# A skippable frame, which every zstd reader passes over. It holds the size of the line's frame that
# follows, and the SHA-256 of the digest before and that frame.
HEAD = struct.Struct("<8sI32s")
HEAD_BEGINS = struct.pack("<II", 0x184D2A50, HEAD.size - 8)
BODY = b',"body":'
# The number of this format of scan files. A file is never rewritten, so later releases read all
# numbers. A member that is added later needs no new number: it gets a default that says "not
# recorded", and earlier releases pass over it. A new number is for what they would misread: another
# meaning, a new value of an enumeration, another frame.
FORMAT: Final = 1
# Members of a header that decide which requests are sent.
DECIDING: Final = ("base_url", "path", "page_size", "configured_key", "algorithm", "passes")


class ScanHeader(msgspec.Struct, frozen=True, tag_field="line", tag="header"):
    """Line 1: all that a resumed read needs; with other settings, reading begins again.

    `format` is the number of the format of the file; releases up to 0.2.0 do not write it.
    """

    scan_id: str
    run_id: str
    connection: str
    stream: str
    path: str
    actor: str
    started_at: datetime
    day: date
    configured_key: str | None
    traits: ListTraits = msgspec.field(name="memory")
    page_size: int  # the limit that is asked for
    algorithm: int
    base_url: str = ""
    passes: int = 1  # how many readings must agree
    format: int = 1

    def begins_like(self, other: "ScanHeader") -> bool:
        """Return whether another scan would send the same requests to the same service."""
        return all(getattr(self, name) == getattr(other, name) for name in DECIDING)


def cached_seconds(headers: Mapping[str, str]) -> int:
    """Return for how many seconds a cache kept an answer (`Age`); 0 if the service gave it now."""
    # Of longer numbers, the first nine digits are more than enough.
    age = re.fullmatch(r"\s*([0-9]{1,9})[0-9]*\s*", headers.get("age", ""))
    if age is None:
        return 0
    return int(age[1])


class Exchange(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="exchange"):
    """One request and what came of it.

    `page` numbers the exchanges of a scan file from 1; 0: not yet written. `ask` numbers the
    answers that `read_list` used, from 1; None if it did not use this one. `error` says why there
    is no page. The purpose "stop" records that reading was stopped, with the reason in `error`.
    `joined` are the digests of the records, so that whoever knows them need not look at the answer.
    `raw` comes from `encode_body`; it is the last member of the line.
    """

    page: int = 0
    ask: int | None
    offset: int
    limit: int
    purpose: str
    status: int | None
    sent_at: datetime
    received_at: datetime
    request_id: str | None
    headers: dict[str, str]
    error: str | None = None
    joined: bytes = msgspec.field(name="digests", default=b"")
    raw: msgspec.Raw = msgspec.field(name="body")

    @property
    def is_plain(self) -> bool:
        """Whether the answer is stored as it came: an object in UTF-8, in one line."""
        return bytes(memoryview(self.raw)[:1]) == b"{"

    @property
    def body(self) -> bytes | None:
        """The answer exactly as received; None without one."""
        if self.is_plain:
            return bytes(self.raw)
        text = msgspec.json.decode(self.raw, type=str | None)
        if text is None:
            return None
        # As `encode_body` has made it: a character for each byte.
        return text.encode("latin-1")

    def records(self) -> list[bytes]:
        """Return the raw records of the page; none without an answer. Raises UnexpectedAnswer."""
        body = self.body
        if not body:
            return []
        return parse_page(body).records

    def digests(self) -> Digests:
        """Return the digests of the raw records of the page."""
        return split_digests(self.joined or join_digests(self.records()))

    def rows_where(self, holds: Callable[[bytes], bool]) -> list[int]:
        """Return the rows of the page whose raw records fulfil a condition."""
        return [row for row, raw in enumerate(self.records()) if holds(raw)]

    def without(self, rows: Collection[int]) -> "Exchange":
        """Return the exchange with null in place of some records."""
        if not rows:
            return self
        body = erase_records(self.body or b"", rows)
        return replace(self, joined=join_digests(parse_page(body).data), raw=encode_body(body))


def encode_body(body: bytes | None, *, is_json: bool = False) -> msgspec.Raw:
    """Return an answer as JSON that any reader accepts, in one line.

    An object stays as it is; of anything else, each byte becomes a character of a string. With
    `is_json`, a decoder has accepted the answer.
    """
    if body is None:
        return msgspec.Raw(b"null")
    if _is_line_of_json(body, is_json=is_json):
        return msgspec.Raw(body)
    return msgspec.Raw(msgspec.json.encode(body.decode("latin-1")))


def _is_line_of_json(body: bytes, *, is_json: bool) -> bool:
    """Return whether an answer is an object in UTF-8, in one line."""
    if not body.startswith(b"{") or b"\n" in body or b"\r" in body:
        return False
    try:
        body.decode()
        # A decoder that has accepted the answer passes over spaces at its end.
        if is_json and body.endswith(b"}"):
            return True
        return bytes(msgspec.json.decode(body, type=msgspec.Raw)) == body
    except (ValueError, RecursionError):
        return False


class Seal(msgspec.Struct, frozen=True, tag_field="line", tag="seal"):
    """The last line. `original` is the digest of all lines before records were erased."""

    completeness: Completeness
    original: str | None = None


Line = ScanHeader | Exchange | Seal


class _Format(msgspec.Struct):
    """The one member of a header that every release can read."""

    format: int = 1


class _Zstd(threading.local):
    """Compresses and decompresses frames; one for each thread, since it is no object for two."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


zstd = _Zstd()


class Frame(NamedTuple):
    """One line in a scan file. The header is number 0, so exchanges are numbered from 1.

    `end` is where the next frame begins, `digest` that of all frames up to this one. `content` is
    the skippable frame, and that of the line.
    """

    number: int
    end: int
    digest: bytes
    content: bytes

    def followed_by(self, data: bytes) -> "Frame":
        """Return the next frame."""
        digest = hashlib.sha256(self.digest + data).digest()
        content = HEAD.pack(HEAD_BEGINS, len(data), digest) + data
        return Frame(self.number + 1, self.end + len(content), digest, content)

    def followed_by_line(self, line: Line) -> "Frame":
        """Return the next frame, made of a line."""
        return self.followed_by(zstd.compress(msgspec.json.encode(line) + b"\n"))

    def format(self) -> int:
        """Return the number of the format that a header says. Raises ValueError."""
        text = zstd.decompress(self.content[HEAD.size :])
        return msgspec.json.decode(text, type=_Format).format

    def line(self) -> Line:
        """Return the line. Raises ValueError for one of another format."""
        text = zstd.decompress(self.content[HEAD.size :])
        # The line is cut before the answer: a decoder would look at every letter of it. Quotes in a
        # string are escaped, and no header has this name.
        members, body_begins, body = text.partition(BODY)
        if body_begins:
            members += b',"body":null}'
        line: Line = msgspec.json.decode(members, type=Line)
        if isinstance(line, Exchange):
            return replace(line, raw=msgspec.Raw(body.removesuffix(b"}\n")))
        return line


START = Frame(-1, 0, b"", b"")


def read_frames(source: BinaryIO) -> Iterator[Frame]:
    """Read frames, up to a broken one at the end.

    Raises ValueError where the first is broken, or others follow one that is.
    """
    last = START
    while True:
        head = source.read(HEAD.size)
        _, size, _ = HEAD.unpack(head.ljust(HEAD.size))
        frame = last.followed_by(source.read(size))
        if head != frame.content[: HEAD.size]:
            break
        yield frame
        last = frame
    # A broken frame at the end is what a kill left. Another frame behind it means damage.
    source.seek(last.end)
    if last is START or source.read().find(HEAD_BEGINS, 1) > 0:
        raise ValueError(f"page {last.number + 1} (byte {last.end}) is not what was written")
