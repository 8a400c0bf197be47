"""One night as it is made up: its pages as a service would send them, and what it says of each key.

Here: both from the same plan. Not here: what history makes of it (history_model).
"""

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipelines.state.proof import Grade
from tests.run.nights import USAGE, Source
from tests.warehouse.history_model import Night, Record

KEYS = range(12)
# Whole and broken numbers, lists, objects, and a text that is none: columns come and grow.
SAID: tuple[dict[str, Any], ...] = (
    {"n": 1, "t": "a"},
    {"n": 2, "t": "a"},
    {"n": 1, "t": "b", "l": [{"x": 1}]},
    {"n": 1.5, "t": "b", "l": [{"x": 1}, {"x": 2, "y": "z"}]},
    {"n": 1, "t": None, "o": {"b": 1, "a": "u"}},
    {"n": 1, "t": True},
    {"n": 1},
)
VARIANTS = range(len(SAID))


@dataclass(frozen=True)
class Plan:
    """One night: what is missing, what each key says, what cannot be read, and how it was read.

    `words`: the sources of which a person accepts what is held back. `replayed`: first day and
    number of days.
    """

    source: Source = USAGE
    variants: Mapping[int, int] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()
    aside: frozenset[int] = frozenset()
    stale: frozenset[int] = frozenset()
    grade: Grade = Grade.COMPLETE
    same_day: bool = False
    words: frozenset[Source] = frozenset()
    replayed: tuple[int, int] | None = None
    turned: bool = False

    def pages(self) -> list[str]:
        """Return the pages: first what was read again later and had changed by then."""
        stale = [self._text(key, stale=True) for key in self._there if key in self.stale]
        return [f"[{', '.join(texts)}]" for texts in (stale, map(self._text, self._there))]

    @property
    def _there(self) -> list[int]:
        return [key for key in KEYS if key not in self.missing]

    def _record(self, key: int, *, stale: bool = False) -> dict[str, Any]:
        own = {} if self.source.key is None else {self.source.key: key}
        return own | SAID[(self.variants.get(key, 0) + stale) % len(SAID)]

    def _text(self, key: int, *, stale: bool = False) -> str:
        record = self._record(key, stale=stale)
        if key in self.aside and not stale:
            record["n"] = float("nan")
        return json.dumps(dict(reversed(record.items())) if self.turned else record)

    def night(self, moment: datetime) -> Night:
        """Return what the pages say; without a key, a record is what it says and how often."""
        aside = self.aside - self.missing
        sound = [(key, self._record(key, stale=True)) for key in self._there if key in self.stale]
        sound += [(key, self._record(key)) for key in self._there if key not in aside]
        whole, day = self.grade.counts_missing, moment.date()
        partial = self.grade is Grade.PARTIAL
        if self.source.key is not None:
            return Night(moment, day, dict(sound), aside, len(aside), whole, partial=partial)
        again = len(self.stale - self.missing)
        stale: list[Record] = [record for _key, record in sound[:again]]
        newer: list[Record] = [record for _key, record in sound[again:]]
        records = _records([stale, newer] if self.grade is not Grade.COMPLETE else [stale + newer])
        # Nobody knows which records those are that were set aside: nothing is missing.
        whole = whole and not aside
        return Night(moment, day, records, frozenset(), len(aside), whole, partial=partial)


def _records(pages: list[list[Record]]) -> dict[Hashable, Record]:
    """Return what pages of different passes show: of equal records as many as any one page."""
    found: dict[Hashable, Record] = {}
    for page in pages:
        counted: Counter[str] = Counter()
        for record in page:
            content = json.dumps(record, sort_keys=True)
            counted[content] += 1
            found[content, counted[content]] = record
    return found
