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


class _Request(msgspec.Struct, frozen=True, kw_only=True):
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


class Exchange(_Request, frozen=True, kw_only=True):
    """One request and what came of it.

    `ask` numbers the Ask (from 1) that the answer was used for; None for an answer that nobody used
    and for a refused or failed request. `sent` and `received` are event counters. `body` is the
    answer exactly as received, None where there is none. `error` says why a request has no page.
    A line with `purpose` "stop" records that reading was stopped, with the reason in `error`.
    """

    body: bytes | None


class _ExchangeLine(_Request, frozen=True, kw_only=True, omit_defaults=True):
    page: int
    sha256: str | None = None
    # At most one of them, as the last member: an answer that is one line of JSON keeps its bytes.
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: bytes | msgspec.UnsetType = msgspec.UNSET


class PageRows(NamedTuple):
    """A page as the loader sees it: raw records, which of them count, which go to quarantine."""

    number: int
    records: list[bytes]
    used: Ranges
    conflicting: Ranges


class Seal(msgspec.Struct, frozen=True):
    """The last line. `rate_limited` counts the answers with status 429.

    `offsets` is where the frame of each exchange begins.
    """

    completeness: Completeness
    rate_limited: int
    offsets: tuple[int, ...]


class HeaderLine(msgspec.Struct):
    """Line 1 as JSON."""

    header: ScanHeader


class SealLine(msgspec.Struct):
    """The last line as JSON."""

    seal: Seal


SEAL_START = b'{"seal":'
Line = TypeVar("Line")


def encode(line: msgspec.Struct) -> bytes:
    """Return a value as one line of JSON."""
    return msgspec.json.encode(line) + b"\n"


def decode(line: bytes, kind: type[Line]) -> Line:
    """Return the value of a line. Raises ValueError where it is another line."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the line is not what is expected there ({error})") from None


def encode_exchange(number: int, exchange: Exchange) -> bytes:
    """Return the line of an exchange. The bytes of a JSON body are copied, not escaped."""
    values = msgspec.structs.asdict(exchange)
    if (body := values.pop("body")) is not None:
        values |= {"sha256": hashlib.sha256(body).hexdigest(), **_body_member(body)}
    return encode(_ExchangeLine(page=number, **values))


def _body_member(body: bytes) -> dict[str, msgspec.Raw | str | bytes]:
    """Return a body as JSON where any reader accepts it within a line, else as text or base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"base64": body}
    if b"\n" in body or b"\r" in body or body != body.strip():
        return {"text": text}
    try:
        return {"body": msgspec.json.decode(body, type=msgspec.Raw)}
    except (msgspec.DecodeError, RecursionError):
        return {"text": text}


def decode_exchange(line: bytes, number: int) -> Exchange:
    """Return the exchange of a line that must have this number.

    Raises:
        ValueError: it is another line, or the body does not match its digest.
    """
    found = decode(line, _ExchangeLine)
    if found.page != number:
        raise ValueError(f"page {found.page} is found in its place")
    body = _body(found)
    if found.sha256 != (None if body is None else hashlib.sha256(body).hexdigest()):
        raise ValueError("the digest of the answer does not match")
    shared = {name: getattr(found, name) for name in _Request.__struct_fields__}
    return Exchange(body=body, **shared)


def _body(line: _ExchangeLine) -> bytes | None:
    if line.body is not msgspec.UNSET:
        return bytes(line.body)
    if line.text is not msgspec.UNSET:
        return line.text.encode()
    return None if line.base64 is msgspec.UNSET else line.base64
