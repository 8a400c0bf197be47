"""Redaction: records taken out of archived pages for good, null left in their place.

Every page is read: a record that says an identifier anywhere is taken out, of whatever stream.
Here: finding the records and rewriting the pages. Not here: what is made of them (run.erasure).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pipelines.api import items, page
from pipelines.errors import LandingFailed
from pipelines.state.redactions import Redaction
from pipelines.warehouse.archive import Archive


@dataclass(frozen=True)
class Sought:
    """An identifier as records say it: as a text, as a number, as a name; by default as a whole.

    `within` takes also the records that say it as a part of a longer text.
    """

    identifier: str
    within: bool = False

    def may_be_in(self, body: bytes) -> bool:
        """Tell whether it is worth taking a page apart; a text may be written with escapes."""
        return self.identifier.encode() in body or b"\\" in body

    def is_in(self, text: bytes) -> bool:
        """Tell whether a record says it anywhere, at any depth."""
        try:
            record = json.loads(
                text, parse_int=_Number, parse_float=_Number, object_pairs_hook=list
            )
        except (ValueError, RecursionError):  # nothing can read it: then what is written counts
            return self.identifier.encode() in text
        return any(self._is(each) for each in _scalars(record))

    def _is(self, scalar: Any) -> bool:
        if isinstance(scalar, _Number):
            return scalar == self.identifier or _equal(scalar, self.identifier)
        if not isinstance(scalar, str):
            return False
        return scalar == self.identifier or (self.within and self.identifier in scalar)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _scalars(value: Any) -> Iterator[Any]:
    """Yield every scalar of a record, and the names of its members."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, (list, tuple)):
            waiting.extend(found)
        else:
            yield found


def _equal(number: str, identifier: str) -> bool:
    try:
        return Decimal(number) == Decimal(identifier)
    except InvalidOperation:
        return False


@dataclass(frozen=True)
class Act:
    """Whose act a redaction is, when, and why."""

    by: str
    at: datetime
    reason: str


def found(
    archive: Archive, sought: Sought, told: Callable[[int, int], None]
) -> Iterator[tuple[str, list[int]]]:
    """Yield each page that has such records, and their rows; `told` hears of pages done and all.

    Raises LandingFailed for a page that cannot be read: what is in it could not be erased.
    """
    every, known = list(archive.pages()), archive.redactions
    left = [digest for digest in every if digest in known]  # by a kill
    looked = [digest for digest in every if digest not in known]
    yield from ((digest, []) for digest in left)
    for done, (digest, body) in enumerate(zip(looked, archive.bodies(looked), strict=True), 1):
        if rows := _rows(body(), sought):
            yield digest, rows
        told(len(left) + done, len(every))


def _rows(body: bytes, sought: Sought) -> list[int]:
    if not sought.may_be_in(body):
        return []
    texts = page.records(body)
    return [row for row, text in enumerate(texts) if sought.is_in(bytes(text))]


def redacted(archive: Archive, digest: str, rows: list[int], act: Act) -> Redaction:
    """Archive what is left of a page; return what is to be recorded of it."""
    body = archive.body(digest)
    blank = items.blanked(body, rows)
    before, after = page.records(body), page.records(blank)
    kept = [b"null" if row in rows else bytes(text) for row, text in enumerate(before)]
    if [bytes(text) for text in after] != kept:
        raise LandingFailed(
            f"archived page {digest} could not be rewritten; nothing of it was erased. This is a "
            "defect of partner-sync: please report it."
        )
    return Redaction(digest, archive.put(blank), rows, act.reason, act.by, act.at)
