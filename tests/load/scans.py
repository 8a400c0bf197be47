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
from msgspec.structs import replace

from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.config.settings import Stream
from pipelines.core.proof import ListTraits, Ranges
from pipelines.load.load import LoadResult, create_tables, load_scan
from tests.archive.scans import HEADER, exchange, page, proof

START = datetime(2026, 11, 1, tzinfo=UTC)
NEVER_HELD = Stream.model_construct(max_deleted_share=1.0, allow_empty=True)
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
        day = next(self.numbers)
        ended_at = reading.ended_at or START + day * EVERY
        begun = {"started_at": ended_at - timedelta(minutes=1)}
        about = {"scan_id": f"scan{day:03}", "day": ended_at.date(), **begun}
        named = {"stream": reading.stream, "connection": reading.connection}
        header = replace(HEADER, **about, **named)
        file = OpenScan.create(self.folder / f"{header.scan_id}.jsonl.zst", header)
        raws = [*reading.records, *reading.conflicting]
        used: dict[int, Ranges] = {}
        conflicting: dict[int, Ranges] = {}
        for offset in range(0, max(1, len(raws)), reading.page_size):
            records = [
                raw.encode() if isinstance(raw, str) else raw
                for raw in raws[offset : offset + reading.page_size]
            ]
            number = file.append(exchange(page(*records)), durable=False)
            first = min(max(0, len(reading.records) - offset), len(records))
            used[number] = ((0, first),) if first else ()
            conflicting[number] = ((first, len(records)),) if first < len(records) else ()
        return file.seal(
            replace(
                proof(used, conflicting),
                complete=reading.complete,
                rows=len(reading.records),
                reason="" if reading.complete else "time is up",
                ended_at=ended_at,
                traits=ListTraits(key=reading.key, key_decided=True),
                **begun,
            )
        )

    def load(
        self, records: Sequence[str | bytes] | Reading, stream: Stream = NEVER_HELD
    ) -> LoadResult:
        """Load records as the next scan."""
        reading = records if isinstance(records, Reading) else Reading(records)
        return load_scan(self.db, self.scan(reading), stream)

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
        create_tables(db)
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET threads = 1")
        yield Warehouse(folder, db)
