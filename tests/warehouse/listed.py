"""A list of records served page by page, as the client would hand it on, and scans of it."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import count
from typing import Any

from pipelines.api import page
from pipelines.api.key import Identity
from pipelines.api.page import Answer, Page
from pipelines.api.prefetch import Race
from pipelines.clock import Clock
from pipelines.state import journal
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.locks import Files
from pipelines.warehouse.scan import Progress, Scanner
from pipelines.warehouse.turn import Turns
from tests.virtual import EPOCH
from tests.warehouse.conftest import Warehouse

Record = dict[str, Any]
DAY = date(2026, 1, 1)
READING = Reading("run-1", "default", "things", DAY)
FIRST = Identity(("id", "thingId", "thing_id"))
KNOWN = Identity(("id",), known=True)


_ticks = count()
# Every look at it is a second later; what waits lets the others run (threads write the pages).
CLOCK = Clock(
    now=lambda: EPOCH + timedelta(seconds=next(_ticks)), sleep=lambda _wait: asyncio.sleep(0.001)
)


class KilledError(BaseException):
    """Stands for kill -9: nothing of ours gets to react to it."""


def still(_records: list[Record], _number: int) -> None:
    """Change nothing."""


@dataclass
class Listed:
    """Records in pages; `change` is told the number of every request, `deadly` is answered last."""

    records: list[Record]
    limit: int = 10
    change: Callable[[list[Record], int], None] = still
    deadly: int | None = None
    error: BaseException = field(default_factory=KilledError)
    asked: list[int] = field(default_factory=list)

    async def fetch(self, offset: int) -> Page:
        await asyncio.sleep(0)
        if len(self.asked) == self.deadly:
            raise self.error
        self.change(self.records, len(self.asked))
        self.asked.append(offset)
        found = self.records[offset : offset + self.limit]
        more = offset + self.limit < len(self.records)
        after = offset + self.limit if more else None
        paging = {"limit": self.limit, "offset": offset, "has_more": more, "next_offset": after}
        body = json.dumps({"data": found, "pagination": paging}).encode()
        now = CLOCK.now()
        return page.read(Answer("/v2/things", body, 200, None, {}, now, now), offset)


@dataclass
class Scans:
    """Scans into one warehouse."""

    warehouse: Warehouse
    clock: Clock = CLOCK
    news: list[Progress] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    ahead: bool = False
    minutes: int | None = None

    @property
    def scanner(self) -> Scanner:
        turns = Turns(Files(self.warehouse.home.state), self.clock, self.waits.append)
        return Scanner(
            self.warehouse.ledger,
            self.warehouse.archive,
            self.clock,
            turns,
            self.news.append,
            lambda: self.ahead,
            Race(),
            self.minutes,
        )

    async def reading(
        self, listed: Listed, identity: Identity = FIRST, reading: Reading = READING
    ) -> ManifestRow:
        return await self.scanner.scan(reading, listed.fetch, identity, self.there(reading))

    def there(self, reading: Reading = READING) -> int:
        """Count the day's manifests, as a run does when it decides to read."""
        ledger, stream = self.warehouse.ledger, reading.stream
        return len(journal.manifests(ledger, stream, reading.connection, reading.day))

    def scan(
        self, listed: Listed, identity: Identity = FIRST, reading: Reading = READING
    ) -> ManifestRow:
        """Scan a list in a loop of its own, as a run does."""
        return asyncio.run(self.reading(listed, identity, reading))

    def folded(self, row: ManifestRow) -> list[Record]:
        """Fold a scan's manifest; return the rows."""
        self.warehouse.fold(self.warehouse.archive.read(row.file))
        names = [name for (name,) in self.warehouse.query(NAMES)]
        rows = self.warehouse.query(f"SELECT {', '.join(map(str, names))} FROM current.things")
        return [dict(zip(map(str, names), row, strict=True)) for row in rows]


NAMES = (
    "SELECT column_name FROM duckdb_columns() WHERE table_name = 'things' AND "
    "schema_name = 'current' AND NOT starts_with(column_name, '_') ORDER BY column_index"
)


def numbered(count: int, **others: Any) -> list[Record]:
    return [{"id": number, **others} for number in range(count)]


def run_of(name: str) -> Reading:
    return replace(READING, run=name)


def values(records: Sequence[Record], name: str = "id") -> list[Any]:
    return sorted(record[name] for record in records)
