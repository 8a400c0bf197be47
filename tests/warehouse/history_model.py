"""An independent witness of history: what it should be, in plain Python, a night at a time.

It shares no code with the fold and knows nothing of tables: records are dicts, versions values. A
word that comes late is put where it belongs, and all nights are gone through again.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Version:
    """One version of a record, and why it ended, if it did."""

    key: Hashable
    record: Record
    first_seen: datetime
    valid_from: datetime
    missing_since: tuple[datetime, date] | None = None
    valid_to: datetime | None = None
    why: str | None = None


@dataclass(frozen=True)
class Night:
    """One reading: its sound records by key, the keys of those set aside, how many those are.

    `whole`: missing records count. `partial`: what is missing was not read. `sorry`, `gone`: a
    person lets so many be set aside, be gone.
    """

    moment: datetime
    day: date
    records: Mapping[Hashable, Record]
    aside: frozenset[int] = frozenset()
    flawed: int = 0
    whole: bool = True
    sorry: bool = False
    gone: bool = False
    partial: bool = False


@dataclass
class Model:
    """The open versions by key, and those that ended."""

    there: dict[Hashable, Version] = field(default_factory=dict)
    past: list[Version] = field(default_factory=list)

    @classmethod
    def of(cls, nights: Iterable[Night]) -> "Model":
        """Return what so many nights come to."""
        model = cls()
        for night in nights:
            model.fold(night)
        return model

    def fold(self, night: Night) -> bool:
        """Apply a night; tell whether it was not held back."""
        if night.flawed > 1 and not night.sorry:
            return False
        read = {key: each for key, each in night.records.items() if key not in night.aside}
        absent = self.there.keys() - read.keys() - night.aside
        before = [key for key, version in self.there.items() if version.missing_since is None]
        gone = [key for key in before if key in absent]
        few = len(gone) <= max(1, len(before) // 10) and len(gone) < len(before)
        if gone and not few and not night.gone and not night.partial:
            return False
        for key in absent if night.whole else ():
            self._miss(key, night)
        for key in self.there.keys() - absent:
            self.there[key] = replace(self.there[key], missing_since=None)
        for key, record in read.items():
            self._read(key, record, night)
        return True

    def _miss(self, key: Hashable, night: Night) -> None:
        version = self.there[key]
        if version.missing_since is None:
            self.there[key] = replace(version, missing_since=(night.moment, night.day))
        elif version.missing_since[1] != night.day:
            self._end(key, version.missing_since[0], "missing")

    def _read(self, key: Hashable, record: Record, night: Night) -> None:
        old = self.there.get(key)
        if old is not None and old.record == record:
            return
        first = [each.first_seen for each in self.past if each.key == key]
        if old is not None:
            first.append(old.first_seen)
            self._end(key, night.moment, _why(old.record, record))
        self.there[key] = Version(key, record, min([*first, night.moment]), night.moment)

    def _end(self, key: Hashable, moment: datetime, why: str) -> None:
        self.past.append(replace(self.there.pop(key), valid_to=moment, why=why))


def _why(old: Record, new: Record) -> str:
    return "restated" if _numbers(old) != _numbers(new) else "changed"


def _numbers(record: Record) -> dict[tuple[object, ...], object]:
    """Return every number of a record by its path."""
    found: dict[tuple[object, ...], object] = {}
    waiting: list[tuple[tuple[object, ...], object]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, name), each) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, place), each) for place, each in enumerate(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[path] = value
    return found
