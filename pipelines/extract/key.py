"""Which field identifies the rows of a list: its candidates, and the decision over a first scan."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import Exchange, ScanHeader
from pipelines.core.completeness import ListMemory
from pipelines.extract.pages import Numbers, Page, PageRequest, Purpose

MAX_CANDIDATES = 8
LACKING = 0.01  # share of rows in which a key may be null or missing
CONFLICTING = 0.02  # share of its values that rows with other content may have too
APART = 5  # times as many, if these rows are on several pages
SHARED = 0.5  # a key that is not configured has at least so many values a row
_OTHER_PAGE = np.uint64(0x9E3779B97F4A7C15)
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


@dataclass
class KeySearch:
    """Decides the key of a list, page by page."""

    configured: str | None
    memory: ListMemory
    key: str | None = None
    _fields: tuple[str, ...] = ()
    _pages: list[Numbers] = field(default_factory=list)  # rows that no earlier page reached
    _reached: int = 0
    _due: int = 1  # when so many pages are known, the key is decided again

    def __post_init__(self) -> None:
        self.key = self.memory.key

    def learn(self, page: Page) -> bool:
        """Note what a page shows; return whether from now on another field is the key."""
        first = max(0, self._reached - page.request.offset)
        if first < len(page):
            self._reached = page.end
            self._fields = page.fields
            self._pages.append(page.values[first:])
        is_due = page.request.purpose is Purpose.HEAD or len(self._pages) >= self._due
        return is_due and self.change()

    def change(self) -> bool:
        """Use another field if the one in use is not the best; return whether it changed."""
        if self.memory.key_decided or not self._pages:
            return False
        self._due = 2 * len(self._pages)
        conflicts = {name: self._conflicts(name) for name in self._fields}
        keys = [name for name in self._fields if conflicts[name] is not None]
        # A name of an identifier says more than a few copies with other content: while a list is
        # read, its other fields may change, and a field that is unique by chance hides that.
        order = {name: (not self._is_named(name), conflicts[name] != 0) for name in keys}
        before, self.key = self.key, min(keys, key=order.__getitem__, default=None)
        return self.key != before

    def _is_named(self, name: str) -> bool:
        """Return whether a name says that the field is an identifier."""
        return name in {self.configured, "id"} or name.endswith(("Id", "_id"))

    def _conflicts(self, name: str) -> int | None:
        """Return how many values have rows of other content; None if the field is no key."""
        column = 1 + self._fields.index(name)
        digests, values = np.concatenate([page[:, [0, column]] for page in self._pages]).T
        pages = np.repeat(np.arange(len(self._pages)), [len(page) for page in self._pages])
        present = values != 0
        digests, values, pages = digests[present], values[present], pages[present]
        distinct, conflicts = len(np.unique(values)), _conflicting(values, digests)
        is_named = self._is_named(name)
        if np.count_nonzero(~present) > is_named * LACKING * len(present):
            return None
        # On several pages, a row may also have changed and moved while the list was read.
        together = _conflicting(values + pages.astype(np.uint64) * _OTHER_PAGE, digests)
        most = is_named * CONFLICTING * distinct
        least = SHARED * len(values) if name != self.configured else 0
        if together > most or conflicts > APART * most or distinct < least:
            return None
        return conflicts


def _conflicting(values: Numbers, digests: Numbers) -> int:
    """Return how many values belong to rows of different content."""
    order = np.lexsort((digests, values))
    values, digests = values[order], digests[order]
    different = (values[1:] == values[:-1]) & (digests[1:] != digests[:-1])
    return len(np.unique(values[1:][different]))
