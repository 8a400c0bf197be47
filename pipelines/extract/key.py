"""Which field identifies the rows of a list: its candidates, and the decision over a first scan.

Here: values of key fields as numbers, and which field is the key. Not here: how the key that the
loader reads is spelled (`pipelines/core/key.py`, `pipelines/load/records.py`).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Any

import msgspec
import numpy as np

from pipelines.archive.envelope import ParsedPage
from pipelines.archive.lines import Exchange, ScanHeader, cached_seconds
from pipelines.core.key import key_fields
from pipelines.core.parse import parse_number, plain_text
from pipelines.core.proof import ListTraits
from pipelines.extract.pages import Numbers, Page, PageRequest, Purpose

MOST_CANDIDATES = 8
# Other candidates, where a field with a usual name is unique.
MOST_BESIDE_USUAL = 2
# Share of rows in which a key may be null or missing.
MOST_LACKING = 0.01
# Share of its values that rows with other content may have too; and times as many, if these rows
# are on several pages: then they may be one row that changed and moved.
MOST_CONFLICTING = 0.02
MOST_TIMES_APART = 5
# Distinct values for each row. With fewer, equal rows of a list without a key would be taken for
# copies. Only a configured key may repeat more often.
LEAST_DISTINCT = 0.5
# How all JSON begins that is neither a text nor a number.
BEGINS_OF_OTHERS = {b"", b"{", b"[", b"n", b"t", b"f"}
FIRST_BYTE = itemgetter(slice(1))
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Members = dict[str, msgspec.Raw]
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode_members = msgspec.json.Decoder(Members).decode
# The only list whose answers say how many rows it has.
COUNTED_PATH = "/v2/invoices"


class PageReader:
    """Makes pages of one scan; the first page with rows decides the key candidates."""

    def __init__(self, header: ScanHeader) -> None:
        self._stream = header.stream
        self._is_counted = header.path == COUNTED_PATH
        # The keys that are read, once decided; by field, what gets its value of a decoded record.
        self._keys: tuple[str, ...] | None = None
        self._getters: dict[str, attrgetter[msgspec.Raw]] = {}
        known = header.configured_key or header.traits.key
        if header.configured_key or header.traits.key_decided:
            self._use((known,) if known else ())

    def _use(self, keys: tuple[str, ...]) -> None:
        """Read the fields of these keys from now on."""
        self._keys = keys
        # A struct has attributes `field0`, `field1`, ...: names of fields may be anything.
        attributes = dict[str, str]()
        for key in keys:
            for field_name in key_fields(key):
                if field_name not in self._getters:
                    attribute = f"field{len(attributes)}"
                    attributes[attribute] = field_name
                    self._getters[field_name] = attrgetter(attribute)
        members = [(attribute, msgspec.Raw, msgspec.Raw()) for attribute in attributes]
        record = msgspec.defstruct("Record", members, rename=attributes)
        self._decode = msgspec.json.Decoder[list[Any]](GenericAlias(list, record)).decode

    def read(self, number: int, exchange: Exchange, parsed: ParsedPage) -> Page:
        """Return the page of an exchange."""
        said = parsed.pagination
        return Page(
            number=number,
            request=PageRequest(exchange.offset, Purpose(exchange.purpose)),
            values=np.column_stack([exchange.digests(), *self._columns(exchange, parsed)]),
            fields=self._keys or (),
            limit=said.limit or exchange.limit,
            has_more=bool(said.has_more),
            says_more=said.has_more is not None,
            is_cached=cached_seconds(exchange.headers) > 0,
            total=said.total if self._is_counted else None,
            denial=said.denial,
        )

    def _columns(self, exchange: Exchange, parsed: ParsedPage) -> list[Numbers]:
        """Return a number for the value of each key in each record."""
        # One call decodes the keys of all records of a page. This decoder passes over names that
        # are not UTF-8; an answer stored as it came is UTF-8.
        if self._keys is not None and exchange.is_plain:
            with suppress(*UNREADABLE):
                records = self._decode(b"[%b]" % b",".join(parsed.data))
                return [self._numbers_of_key(key, records) for key in self._keys]
        members = list(map(_members, parsed.data))
        if self._keys is None and members:
            self._use(_candidates(self._stream, members))
        columns = []
        for key in self._keys or ():
            fields = [_numbers(name, members) for name in key_fields(key)]
            columns.append(_joined(fields))
        return columns

    def _numbers_of_key(self, key: str, records: Sequence[Any]) -> Numbers:
        """Return a number for the value of a key in each record that was decoded."""
        fields = [_hashes(map(self._getters[name], records)) for name in key_fields(key)]
        return _joined(fields)


def _members(record: msgspec.Raw) -> Members:
    """Return the members of a record; none if it cannot be read: the loader quarantines it."""
    try:
        return _decode_members(record)
    except UNREADABLE:
        return {}


def _candidates(stream: str, records: Sequence[Members]) -> tuple[str, ...]:
    """Return names that usually are keys, then other scalar fields that are unique here."""
    singular = stream.removesuffix("s")
    usual = ("id", f"{stream}Id", f"{singular}Id", f"{singular}_id")
    named = [name for name in usual if any(name in record for record in records)]
    unique = [name for name in records[0] if _is_unique(name, records)]
    most = MOST_CANDIDATES
    if not set(unique).isdisjoint(named):
        most = len(named) + MOST_BESIDE_USUAL
    return tuple(dict.fromkeys([*named, *unique]))[:most]


def _is_unique(name: str, records: Sequence[Members]) -> bool:
    """Return whether each record has a text or number in a field, and no two the same."""
    values = {*_numbers(name, records)}
    return len(values) == len(records) and 0 not in values


def _numbers(name: str, records: Sequence[Members]) -> Numbers:
    return _hashes(record.get(name, b"") for record in records)


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
    """Return a number for each value that is a text or a number, else 0.

    Values that are one key to the loader have one number, however they are spelled: another server
    may escape a letter, or write 1.0 for 1. Only this process compares the numbers, so they need no
    digest.
    """
    texts = list(map(bytes, values))
    begins = list(map(FIRST_BYTE, texts))
    keys = list(map(bytes.strip, texts, repeat(b'"')))
    if b"\\" in b"".join(texts) or {*begins} != {b'"'}:
        keys = list(map(_plain, keys, texts))
    numbers = np.array(list(map(hash, keys)), np.int64).view(np.uint64)
    numbers[numbers == 0] = 1
    if not BEGINS_OF_OTHERS.isdisjoint(begins):
        numbers[[begin in BEGINS_OF_OTHERS for begin in begins]] = 0
    return numbers


def _plain(key: bytes, text: bytes) -> bytes:
    """Return a key as the loader has it: a text without escapes, a number as short as it can be."""
    if text.startswith(b'"'):
        if b"\\" in text:
            with suppress(msgspec.DecodeError):  # half of a surrogate pair
                return msgspec.json.decode(text, type=str).encode()
        return key
    if key.isdigit():
        return key
    number = parse_number(key.decode("ascii", "replace"))
    return key if number is None else plain_text(number).encode()


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
    # Values of rows that no earlier page reached, by page.
    _pages: list[Numbers] = field(default_factory=list)
    _reached: int = 0
    # How many pages were known when the key was decided last.
    _decided: int = 0

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
        key = self._named_key() or self._other_key()
        has_changed = key != self.key
        self.key = key
        return has_changed

    def _named_key(self) -> str | None:
        """Return the first key with a name of an identifier, best one without conflicts."""
        with_conflicts = []
        for name in self._fields:
            if not _is_named(name):
                continue
            conflicts = self._conflicts(name)
            if conflicts == 0:
                return name
            if conflicts is not None:
                with_conflicts.append(name)
        return with_conflicts[0] if with_conflicts else None

    def _other_key(self) -> str | None:
        """Return the first of the other fields that has no conflict."""
        for name in self._fields:
            if not _is_named(name) and self._conflicts(name) == 0:
                return name
        return None

    def _conflicts(self, name: str) -> int | None:
        """Return how many values have rows of other content; None if the field is no key."""
        all_values = self._column(1 + self._fields.index(name))
        is_present = all_values != 0
        values = all_values[is_present]
        lacking = len(all_values) - len(values)
        distinct = len(np.unique(values))
        most_lacking = 0.0
        most_conflicts = 0.0
        # Only a field with a name of an identifier may have exceptions.
        if _is_named(name):
            most_lacking = MOST_LACKING * len(all_values)
            most_conflicts = MOST_CONFLICTING * distinct
        if lacking > most_lacking or distinct < LEAST_DISTINCT * len(values):
            return None
        if distinct == len(values):
            return 0
        digests = self._column(0)[is_present]
        # Of these numbers, rows of two pages never share one, whatever their values are.
        values_of_pages = values + self._page_numbers()[is_present] * _FACTOR
        if _count_conflicts(values_of_pages, digests) > most_conflicts:
            return None
        conflicts = _count_conflicts(values, digests)
        if conflicts > MOST_TIMES_APART * most_conflicts:
            return None
        return conflicts

    def _column(self, number: int) -> Numbers:
        """Return a column of the rows of all pages."""
        return np.concatenate([page[:, number] for page in self._pages])

    def _page_numbers(self) -> Numbers:
        """Return the number of its page for each row."""
        lengths = [len(page) for page in self._pages]
        return np.repeat(np.arange(len(self._pages), dtype=np.uint64), lengths)


def _is_named(name: str) -> bool:
    """Return whether a name says that the field is an identifier."""
    return name == "id" or name.endswith(("Id", "_id"))


def _count_conflicts(values: Numbers, digests: Numbers) -> int:
    """Return how many values belong to rows of different content."""
    order = np.lexsort((digests, values))
    values = values[order]
    digests = digests[order]
    is_same_value = values[1:] == values[:-1]
    is_different = is_same_value & (digests[1:] != digests[:-1])
    return len(np.unique(values[1:][is_different]))
