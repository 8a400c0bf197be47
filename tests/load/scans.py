"""Scan files made of raw records, and what a database holds after they were loaded."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from pipelines.archive.scan_file import Exchange, OpenScan, ScanHeader, SealedScan
from pipelines.core.completeness import Completeness, ListMemory, Method, ReadBudget
from pipelines.load.load import LoadPolicy, LoadResult, load_scan

START = datetime(2026, 11, 1, tzinfo=UTC)
NEVER_HELD = LoadPolicy(max_deleted_share=1.0, allow_empty=True)
EVERY = timedelta(days=1)


@dataclass(frozen=True)
class Reading:
    """What one scan of a list found. Records are raw JSON; `conflicting` ones come behind."""

    records: Sequence[str | bytes]
    complete: bool = True
    key: str | None = "id"
    conflicting: Sequence[str] = ()
    ended_at: datetime | None = None
    page_size: int = 500
    stream: str = "usage"
    connection: str = "default"


@dataclass
class Warehouse:
    """A database, and the scans that are loaded into it, a day apart."""

    folder: Path
    db: duckdb.DuckDBPyConnection
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def scan(self, reading: Reading) -> SealedScan:
        """Write a scan file."""
        number = next(self.numbers)
        ended_at = reading.ended_at or START + number * EVERY
        header = _header(reading, f"scan{number:03}", ended_at)
        file = OpenScan.create(self.folder / f"{header.scan_id}.jsonl.zst", header)
        raws = [*reading.records, *reading.conflicting]
        used: dict[int, tuple[tuple[int, int], ...]] = {}
        conflicting: dict[int, tuple[tuple[int, int], ...]] = {}
        for offset in range(0, max(1, len(raws)), reading.page_size):
            page = raws[offset : offset + reading.page_size]
            number = file.append(_exchange(page, offset, ended_at), durable=False)
            first = min(max(0, len(reading.records) - offset), len(page))
            if first:
                used[number] = ((0, first),)
            if first < len(page):
                conflicting[number] = ((first, len(page)),)
        return file.seal(
            Completeness(
                complete=reading.complete,
                method=Method.OVERLAPPING_PAGES,
                rows=len(reading.records),
                repeated=0,
                not_seen=None if reading.complete else 1,
                reason="" if reading.complete else "time is up",
                requests=1,
                started_at=ended_at - timedelta(minutes=1),
                ended_at=ended_at,
                used=used,
                conflicting=conflicting,
                memory=ListMemory(key=reading.key, key_decided=True),
            )
        )

    def load(
        self, records: Sequence[str | bytes] | Reading, policy: LoadPolicy = NEVER_HELD
    ) -> LoadResult:
        """Load records as the next scan."""
        reading = records if isinstance(records, Reading) else Reading(records)
        return load_scan(self.db, self.scan(reading), policy)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what a query returns."""
        return self.db.execute(query).fetchall()

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query."""
        (row,) = self.rows(query)
        return row

    def current(self, table: str = "usage") -> list[dict[str, Any]]:
        """Return the current rows without columns of ours, in the order of their keys."""
        key = "_key" if "__" not in table else "_parent_key, _index"
        found = self.db.execute(f'SELECT * FROM current."{table}" ORDER BY {key}')
        names = [each[0] for each in found.description or ()]
        shown = [name for name in names if name == "_extra" or not name.startswith("_")]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return [{name: row[name] for name in shown} for row in rows]

    def types(self, table: str = "usage") -> dict[str, str]:
        """Return the types of the columns of data."""
        found = self.rows(f'DESCRIBE history."{table}"')
        return {name: kind for name, kind, *_ in found if not name.startswith("_")}

    def extras(self, table: str = "usage") -> list[Any]:
        """Return what is in `_extra`, in the order of the keys."""
        return [json.loads(row["_extra"] or "null") for row in self.current(table)]


@contextmanager
def open_warehouse(folder: Path) -> Iterator[Warehouse]:
    """Open an empty database in memory."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET threads = 1")
        yield Warehouse(folder, db)


def _header(reading: Reading, scan_id: str, ended_at: datetime) -> ScanHeader:
    return ScanHeader(
        scan_id=scan_id,
        run_id="run",
        connection=reading.connection,
        stream=reading.stream,
        path=f"/v2/{reading.stream}",
        actor="partner",
        started_at=ended_at - timedelta(minutes=1),
        day=ended_at.date(),
        configured_key=None,
        memory=ListMemory(),
        budget=ReadBudget(reading.page_size),
        algorithm=1,
    )


def _exchange(page: Sequence[str | bytes], offset: int, at: datetime) -> Exchange:
    raws = [raw.encode() if isinstance(raw, str) else raw for raw in page]
    more = b'{"limit":500,"offset":%d,"has_more":false,"next_offset":null}' % offset
    return Exchange(
        ask=1,
        sent=1,
        received=2,
        offset=offset,
        limit=500,
        purpose="page",
        status=200,
        sent_at=at,
        received_at=at,
        request_id=None,
        headers={},
        body=b'{"data":[' + b",".join(raws) + b'],"pagination":' + more + b"}",
    )
