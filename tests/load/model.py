"""History in plain Python: what the tables should hold. It shares no code with load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(frozen=True)
class Version:
    """One version of a row."""

    key: str
    content: Any
    valid_from: datetime
    valid_to: datetime | None = None
    end_reason: str | None = None


@dataclass(frozen=True)
class Scan:
    """What a scan has: usable records by key, keys of unusable ones (None: no readable key)."""

    records: Mapping[str, Any]
    unusable: Sequence[str | None] = ()
    complete: bool = True
    ended_at: datetime = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class Model:
    """All versions of the rows of one list."""

    open: dict[str, Version] = field(default_factory=dict)
    ended: list[Version] = field(default_factory=list)
    last: datetime | None = None

    def load(self, scan: Scan) -> None:
        """Apply a scan."""
        tick = timedelta(microseconds=1)
        time = scan.ended_at if self.last is None else max(scan.ended_at, self.last + tick)
        self.last = time
        ends = scan.complete and None not in scan.unusable
        for key in list(self.open):
            if ends and key not in scan.records and key not in scan.unusable:
                self._end(key, time, "deleted")
        for key, content in scan.records.items():
            known = self.open.get(key)
            if known is not None and known.content != content:
                self._end(key, time, "changed")
            if key not in self.open:
                self.open[key] = Version(key, content, time)

    def _end(self, key: str, time: datetime, reason: str) -> None:
        self.ended.append(replace(self.open.pop(key), valid_to=time, end_reason=reason))

    def versions(self) -> list[Version]:
        """Return all versions in one order."""
        return sorted([*self.ended, *self.open.values()], key=lambda v: (v.key, v.valid_from))
