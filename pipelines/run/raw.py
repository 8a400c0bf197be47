"""A record as it lies in the archive: its page opened and checked, its values as they were sent.

Numbers are exact decimals of the lexemes. Not here: what the values should come to (explaining).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from pipelines.api import page
from pipelines.errors import LandingFailed
from pipelines.run.fields import ITEM
from pipelines.run.session import Session
from pipelines.state import journal
from pipelines.state.journal import LinkedPage

UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True)
class Raw:
    """One record of a page; `trouble` says why there is none, `redacted` what was erased there.

    `list_of` is connection/stream of the reading that first had the page, `read` that reading.
    """

    digest: str
    row: int
    record: Mapping[str, Any] | None = None
    read: LinkedPage | None = None
    trouble: str = ""
    redacted: str = ""
    list_of: str = ""

    def number(self, path: str | None, place: int | None = None) -> Decimal | None:
        """Return the number at a path of the mapping, of the array's item at a place."""
        return decimal(value(self.record, path, place)) if path else None


@dataclass
class Opener:
    """Opens archived pages, one at a time: rows of one page should follow each other."""

    session: Session
    digest: str = ""
    texts: list[Any] = field(default_factory=list)
    read: LinkedPage | None = None
    trouble: str = ""
    list_of: str = ""

    def record(self, digest: str | None, row: int | None) -> Raw:
        """Return a record; the SHA-256 of its page is checked whenever that is opened."""
        if digest is None or row is None:
            return Raw("", -1, trouble="it comes from no archived page")
        if digest != self.digest:
            self._open(digest)
        found, trouble = None, self.trouble
        if not trouble and row in self.session.archive.erased(digest):
            trouble = "the record was erased"
        elif not trouble:
            found, trouble = self._read(row)
        return Raw(digest, row, found, self.read, trouble, self._redacted(digest), self.list_of)

    def _read(self, row: int) -> tuple[Mapping[str, Any] | None, str]:
        if not 0 <= row < len(self.texts):
            return None, f"the page has {len(self.texts)} records only"
        try:
            found = json.loads(bytes(self.texts[row]), parse_float=Decimal, parse_int=Decimal)
        except UNREADABLE:
            return None, "the record is no JSON that can be read"
        return (found, "") if isinstance(found, dict) else (None, "the record is no object")

    def _open(self, digest: str) -> None:
        known = journal.first_read(self.session.ledger, digest)
        self.digest, self.texts, self.trouble = digest, [], ""
        self.read, self.list_of = (known[2], "/".join(known[:2])) if known else (None, "")
        try:
            self.texts = list(page.records(self.session.archive.body(digest)))
        except LandingFailed as error:
            self.trouble = str(error)

    def _redacted(self, digest: str) -> str:
        """Say what was erased from a page since it was read; its other records are as they were."""
        acts, said = self.session.archive.redactions, []
        while digest in acts:
            act = acts[digest]
            rows = f"{len(act.rows)} of its records erased"
            said.append(f"{rows} on {act.at:%Y-%m-%d} by {act.by}: {act.reason}")
            digest = act.new
        return "; ".join(said)


def value(record: Any, path: str, place: int | None = None) -> Any:
    """Return what is at a path of the mapping: period.start, or lines[].amount of a place."""
    for step in path.split("."):
        record = record.get(step.removesuffix(ITEM)) if isinstance(record, Mapping) else None
        if step.endswith(ITEM):
            there = isinstance(record, list) and place is not None and place < len(record)
            record = record[place] if there else None
    return record


def decimal(found: Any) -> Decimal | None:
    """Return a number as sent, or a text that is one; None for anything else."""
    if not isinstance(found, Decimal | str):
        return None
    try:
        return Decimal(found)
    except InvalidOperation:
        return None
