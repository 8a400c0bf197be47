"""Lines of a scan file: the header, one line for each exchange, the seal; as values and as JSON."""

import hashlib
from datetime import date, datetime
from typing import NamedTuple, TypeVar

import msgspec

from pipelines.core.completeness import Completeness, ListMemory, Ranges, ReadBudget


class ScanHeader(msgspec.Struct, frozen=True):
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


class Exchange(msgspec.Struct, frozen=True):
    """One request and what came of it.

    `ask` numbers the Ask (from 1) that the answer was used for; None for an answer that nobody used
    and for a refused or failed request. `sent` and `received` are event counters. `body` is the
    answer exactly as received, None where there is none. `error` says why a request has no page.
    A line with `purpose` "stop" records that reading was stopped, with the reason in `error`.
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
    body: bytes | None
    error: str | None = None


class PageRows(NamedTuple):
    """A page as the loader sees it: raw records, which of them count, which go to quarantine."""

    number: int
    records: list[bytes]
    used: Ranges
    conflicting: Ranges


class Seal(msgspec.Struct, frozen=True):
    """The last line.

    `rate_limited` counts the answers with status 429, `offsets` is where the frame of each exchange
    begins, `sha256` the digest of every byte before the frame of the seal.
    """

    completeness: Completeness
    pages: int
    rate_limited: int
    offsets: tuple[int, ...]
    sha256: str


class _HeaderLine(msgspec.Struct):
    header: ScanHeader


class _SealLine(msgspec.Struct):
    seal: Seal


class _ExchangeLine(msgspec.Struct, omit_defaults=True):
    page: int
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
    sha256: str | None = None
    # At most one of them, as the last member: an answer that is one line of JSON keeps its bytes.
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: bytes | msgspec.UnsetType = msgspec.UNSET


SHARED = tuple(name for name in Exchange.__struct_fields__ if name != "body")
SEAL_START = b'{"seal":'
Line = TypeVar("Line")


def encode_header(header: ScanHeader) -> bytes:
    """Return line 1."""
    return msgspec.json.encode(_HeaderLine(header)) + b"\n"


def decode_header(line: bytes) -> ScanHeader:
    """Return the header of line 1. Raises ValueError."""
    return _decode(line, _HeaderLine).header


def encode_seal(seal: Seal) -> bytes:
    """Return the last line."""
    return msgspec.json.encode(_SealLine(seal)) + b"\n"


def decode_seal(line: bytes) -> Seal:
    """Return the seal of the last line. Raises ValueError."""
    return _decode(line, _SealLine).seal


def encode_exchange(number: int, exchange: Exchange) -> bytes:
    """Return the line of an exchange. The bytes of a JSON body are copied, not escaped."""
    line = _ExchangeLine(page=number, **{name: getattr(exchange, name) for name in SHARED})
    if exchange.body is not None:
        line.sha256 = hashlib.sha256(exchange.body).hexdigest()
        _set_body(line, exchange.body)
    return msgspec.json.encode(line) + b"\n"


def _set_body(line: _ExchangeLine, body: bytes) -> None:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        line.base64 = body
    else:
        if _is_one_line_of_json(body):
            line.body = msgspec.Raw(body)
        else:
            line.text = text


def _is_one_line_of_json(body: bytes) -> bool:
    """Return whether any JSON reader accepts a body within a line, and its bytes come back."""
    if b"\n" in body or b"\r" in body or body != body.strip():
        return False
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def decode_exchange(line: bytes, number: int) -> Exchange:
    """Return the exchange of a line that must have this number.

    Raises:
        ValueError: it is another line, or the body does not match its digest.
    """
    found = _decode(line, _ExchangeLine)
    if found.page != number:
        raise ValueError(f"page {found.page} is found in its place")
    body = _body(found)
    digest = None if body is None else hashlib.sha256(body).hexdigest()
    if digest != found.sha256:
        raise ValueError("the digest of the answer does not match")
    return Exchange(body=body, **{name: getattr(found, name) for name in SHARED})


def _body(line: _ExchangeLine) -> bytes | None:
    if line.body is not msgspec.UNSET:
        return bytes(line.body)
    if line.text is not msgspec.UNSET:
        return line.text.encode()
    return None if line.base64 is msgspec.UNSET else line.base64


def _decode(line: bytes, kind: type[Line]) -> Line:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the line is not what is expected there ({error})") from None
