"""Turns a page as recorded into a Page for `read_list`: digests and values of key candidates."""

import hashlib
from collections.abc import Sequence

import msgspec

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import Exchange, ScanHeader
from pipelines.core.errors import ScanNotFound
from pipelines.extract.pages import Page, PageRequest, Purpose, RowRef

MAX_CANDIDATES = 8
DIGEST_BYTES = 8
Fields = dict[str, msgspec.Raw]


class PageReader:
    """Makes pages of one scan; the first page with rows decides the key candidates."""

    def __init__(self, header: ScanHeader) -> None:
        self._header = header
        self._fields: tuple[str, ...] | None = None
        if header.memory.key_decided:
            self._fields = (header.memory.key,) if header.memory.key else ()
        elif header.configured_key:
            self._fields = (header.configured_key,)

    def read(self, number: int, exchange: Exchange) -> Page:
        """Return the page of an exchange. Raises UnexpectedAnswer."""
        if exchange.body is None:
            raise ScanNotFound(f"Exchange {number} of the scan holds no page.")
        parsed = parse_page(exchange.body, exchange.limit)
        members = [_members(record) for record in parsed.records]
        if self._fields is None and members:
            self._fields = self._candidates(members)
        fields = self._fields or ()
        rows = [
            RowRef(
                hashlib.sha256(record).digest()[:DIGEST_BYTES],
                tuple(_scalar(found.get(name)) for name in fields),
            )
            for record, found in zip(parsed.records, members, strict=True)
        ]
        return Page(
            number=number,
            request=PageRequest(exchange.offset, exchange.limit, Purpose(exchange.purpose)),
            rows=rows,
            fields=fields,
            limit=parsed.limit,
            has_more=parsed.has_more,
            next_offset=parsed.next_offset,
            sent=exchange.sent,
            received=exchange.received,
        )

    def _candidates(self, members: Sequence[Fields]) -> tuple[str, ...]:
        """Return names that usually are keys, then other scalar fields that are unique here."""
        stream = self._header.stream
        singular = stream.removesuffix("s")
        usual = ("id", f"{stream}Id", f"{singular}Id", f"{singular}_id")
        known = {name for found in members for name in found}
        unique = (name for name in members[0] if _is_unique(name, members))
        named = [name for name in usual if name in known]
        return tuple(dict.fromkeys([*named, *unique]))[:MAX_CANDIDATES]


def _members(record: bytes) -> Fields:
    try:
        return msgspec.json.decode(record, type=Fields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}  # no key can be read: the loader quarantines such a record


def _scalar(value: msgspec.Raw | None) -> str | None:
    """Return the JSON text of a text or a number; None for everything else."""
    if value is None:
        return None
    text = bytes(value)
    return None if text[:1] in b"{[ntf" else text.decode("utf-8", "surrogateescape")


def _is_unique(name: str, members: Sequence[Fields]) -> bool:
    values = [_scalar(found.get(name)) for found in members]
    return None not in values and len(set(values)) == len(values)
