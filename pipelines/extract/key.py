"""Which field identifies the rows of a list: its candidates, and the decision over a first scan."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Any

import msgspec
import numpy as np

from pipelines.archive.envelope import ParsedPage
from pipelines.archive.lines import Exchange, ScanHeader, cached_seconds
from pipelines.core.completeness import ListTraits
from pipelines.core.key import key_fields
from pipelines.extract.pages import Numbers, Page, PageRequest, Purpose

MAX_CANDIDATES = 8
BESIDE_USUAL = 2  # other candidates, where a field with a usual name is unique
LACKING = 0.01  # share of rows in which a key may be null or missing
CONFLICTING = 0.02  # share of its values that rows with other content may have too
APART = 5  # times as many, if these rows are on several pages
SHARED = 0.5  # a key that is not configured has at least so many values a row
FIRST = itemgetter(slice(1))
OTHERS = {b"", b"{", b"[", b"n", b"t", b"f"}  # how all begin that is neither a text nor a number
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Members = dict[str, msgspec.Raw]
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode_all = msgspec.json.Decoder(Members).decode


class PageReader:
    """Makes pages of one scan; the first page with rows decides the key candidates."""

    def __init__(self, header: ScanHeader) -> None:
        self._stream = header.stream
        # By key, once decided: what gets the values of its fields.
        self._values: dict[str, list[attrgetter[msgspec.Raw]]] | None = None
        known = header.configured_key or header.traits.key
        if header.configured_key or header.traits.key_decided:
            self._use((known,) if known else ())

    def _use(self, keys: tuple[str, ...]) -> None:
        """Read the fields of these keys from now on."""
        fields = {name: key_fields(name) for name in keys}
        every = dict.fromkeys(chain(*fields.values()))
        names = {f"field{at}": name for at, name in enumerate(every)}
        members = [(each, msgspec.Raw, msgspec.Raw()) for each in names]
        record = msgspec.defstruct("Record", members, rename=names)
        self._decode = msgspec.json.Decoder[list[Any]](GenericAlias(list, record)).decode
        getters = {name: attrgetter(each) for each, name in names.items()}
        self._values = {key: [getters[name] for name in fields[key]] for key in keys}

    def read(self, number: int, exchange: Exchange, parsed: ParsedPage) -> Page:
        """Return the page of an exchange."""
        said = parsed.pagination
        return Page(
            number=number,
            request=PageRequest(exchange.offset, Purpose(exchange.purpose)),
            values=np.column_stack([exchange.digests(), *self._columns(exchange, parsed)]),
            fields=tuple(self._values or ()),
            limit=said.limit or exchange.limit,
            has_more=bool(said.has_more),
            says_more=said.has_more is not None,
            is_cached=cached_seconds(exchange.headers) > 0,
        )

    def _columns(self, exchange: Exchange, parsed: ParsedPage) -> list[Numbers]:
        """Return a number for the value of each field in each record."""
        # This decoder passes over names that are not UTF-8; an answer stored as it came is UTF-8.
        if self._values is not None and exchange.is_plain:
            with suppress(*UNREADABLE):
                records = self._decode(b"[%b]" % b",".join(parsed.data))
                return [
                    _joined([_hashes(map(value, records)) for value in values])
                    for values in self._values.values()
                ]
        members = list(map(_members, parsed.data))
        if self._values is None and members:
            self._use(_candidates(self._stream, members))
        return [
            _joined([_numbers(name, members) for name in key_fields(key)])
            for key in self._values or ()
        ]


def _members(record: msgspec.Raw) -> Members:
    try:
        return _decode_all(record)
    except UNREADABLE:
        return {}  # no key can be read: the loader quarantines such a record


def _candidates(stream: str, members: Sequence[Members]) -> tuple[str, ...]:
    """Return names that usually are keys, then other scalar fields that are unique here."""
    singular = stream.removesuffix("s")
    usual = ("id", f"{stream}Id", f"{singular}Id", f"{singular}_id")
    named = [name for name in usual if any(name in found for found in members)]
    unique = [name for name in members[0] if len({0, *_numbers(name, members)}) > len(members)]
    most = MAX_CANDIDATES if set(unique).isdisjoint(named) else len(named) + BESIDE_USUAL
    return tuple(dict.fromkeys([*named, *unique]))[:most]


def _numbers(name: str, members: Sequence[Members]) -> Numbers:
    return _hashes(found.get(name, b"") for found in members)


def _joined(columns: Sequence[Numbers]) -> Numbers:
    """Return a number for the values of several fields of each record, 0 where one has none."""
    joined = columns[0]
    lacks = columns[0] == 0
    for column in columns[1:]:
        joined = joined * _FACTOR + column
        lacks = lacks | (column == 0)
    joined = np.where(joined == 0, np.uint64(1), joined)
    return np.where(lacks, np.uint64(0), joined)


def _hashes(values: Iterable[bytes | msgspec.Raw]) -> Numbers:
    """Return a number for the JSON text of each value that is a text or a number, else 0.

    Only this process compares them, so they need no digest.
    """
    texts = list(map(bytes, values))
    numbers = np.array(list(map(hash, texts)), np.int64).view(np.uint64)
    numbers[numbers == 0] = 1
    if not OTHERS.isdisjoint(map(FIRST, texts)):
        numbers[[FIRST(text) in OTHERS for text in texts]] = 0
    return numbers


@dataclass
class KeySearch:
    """Decides the key of a list, page by page.

    One that a person configured stays, whatever the records hold, and so does one that an earlier
    scan decided: a few odd records would otherwise make each change a new and a deleted row.
    """

    configured: str | None
    traits: ListTraits
    key: str | None = field(init=False)
    _fields: tuple[str, ...] = ()
    _pages: list[Numbers] = field(default_factory=list)  # rows that no earlier page reached
    _reached: int = 0
    _decided: int = 0  # so many pages were known when the key was decided last

    def __post_init__(self) -> None:
        self.key = self.configured or self.traits.key

    def learn(self, page: Page) -> bool:
        """Note what a page shows; return whether from now on another field is the key."""
        first = max(0, self._reached - page.request.offset)
        if first < len(page):
            self._reached = page.end
            self._fields = page.fields
            self._pages.append(page.values[first:])
        is_due = page.request.purpose is Purpose.HEAD or len(self._pages) >= 2 * self._decided
        return is_due and self.change()

    def change(self) -> bool:
        """Use another field if the one in use is not the best; return whether it changed."""
        if self.configured or self.traits.key_decided or len(self._pages) == self._decided:
            return False
        self._decided = len(self._pages)
        # A name of an identifier says more than a few copies with other content: while a list is
        # read, its other fields may change, and a field that is unique by chance hides that.
        named = {name: self._conflicts(name) for name in self._fields if self._is_named(name)}
        keys = [name for name in named if named[name] is not None]
        best = min(keys, key=lambda name: named[name] != 0, default=None)
        others = (name for name in self._fields if name not in named and self._conflicts(name) == 0)
        before = self.key
        self.key = best or next(others, None)
        return self.key != before

    def _is_named(self, name: str) -> bool:
        """Return whether a name says that the field is an identifier."""
        return name == "id" or name.endswith(("Id", "_id"))

    def _conflicts(self, name: str) -> int | None:
        """Return how many values have rows of other content; None if the field is no key."""
        at = 1 + self._fields.index(name)
        values = np.concatenate([page[:, at] for page in self._pages])
        present = values != 0
        is_named = self._is_named(name)
        values = values[present]
        distinct = len(np.unique(values))
        lacking = len(present) - len(values)
        if lacking > is_named * LACKING * len(present) or distinct < SHARED * len(values):
            return None
        if distinct == len(values):
            return 0
        digests = np.concatenate([page[:, 0] for page in self._pages])[present]
        pages = np.repeat(np.arange(len(self._pages)), list(map(len, self._pages)))[present]
        # On several pages, a row may also have changed and moved while the list was read.
        together = _conflicting(values + pages.astype(np.uint64) * _FACTOR, digests)
        conflicts = _conflicting(values, digests)
        most = is_named * CONFLICTING * distinct
        return None if together > most or conflicts > APART * most else conflicts


def _conflicting(values: Numbers, digests: Numbers) -> int:
    """Return how many values belong to rows of different content."""
    order = np.lexsort((digests, values))
    values = values[order]
    digests = digests[order]
    different = (values[1:] == values[:-1]) & (digests[1:] != digests[:-1])
    return len(np.unique(values[1:][different]))
