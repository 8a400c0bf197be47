"""Turns a page as recorded into a Page for `read_list`: digests and values of key candidates."""

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import Exchange, ScanHeader
from pipelines.extract.pages import Page, PageRequest, Purpose

MAX_CANDIDATES = 8
Members = dict[str, msgspec.Raw]


class PageReader:
    """Makes pages of one scan; the first page with rows decides the key candidates."""

    def __init__(self, header: ScanHeader) -> None:
        self._stream = header.stream
        self._fields: tuple[str, ...] | None = None
        known = header.memory.key if header.memory.key_decided else header.configured_key
        if header.memory.key_decided or known:
            self._fields = (known,) if known else ()

    def read(self, number: int, exchange: Exchange) -> Page:
        """Return the page of an exchange. Raises UnexpectedAnswer."""
        parsed = parse_page(exchange.body or b"", exchange.limit)
        members = [_members(record) for record in parsed.records]
        if self._fields is None and members:
            self._fields = _candidates(self._stream, members)
        fields = self._fields or ()
        values = [
            [_digest(record), *(_number(found.get(name)) for name in fields)]
            for record, found in zip(parsed.records, members, strict=True)
        ]
        return Page(
            number=number,
            request=PageRequest(exchange.offset, exchange.limit, Purpose(exchange.purpose)),
            fields=fields,
            values=np.array(values, np.uint64).reshape(len(values), 1 + len(fields)),
            limit=parsed.limit,
            has_more=parsed.has_more,
        )


def _members(record: bytes) -> Members:
    try:
        return msgspec.json.decode(record, type=Members)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}  # no key can be read: the loader quarantines such a record


def _candidates(stream: str, members: Sequence[Members]) -> tuple[str, ...]:
    """Return names that usually are keys, then other scalar fields that are unique here."""
    singular = stream.removesuffix("s")
    usual = ("id", f"{stream}Id", f"{singular}Id", f"{singular}_id")
    named = [name for name in usual if any(name in found for found in members)]
    unique = (name for name in members[0] if _is_unique(name, members))
    return tuple(dict.fromkeys([*named, *unique]))[:MAX_CANDIDATES]


def _is_unique(name: str, members: Sequence[Members]) -> bool:
    values = {_number(found.get(name)) for found in members}
    return 0 not in values and len(values) == len(members)


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:8])


def _number(value: msgspec.Raw | None) -> int:
    """Return a number for the JSON text of a text or a number; 0 for everything else."""
    text = b"n" if value is None else bytes(value)
    return 0 if text[:1] in b"{[ntf" else _digest(text) or 1
