"""Retention: which manifests and pages nothing needs any more.

Needed are: what is kept of each stream, the pages of the rows that a base snapshot has, what a
closed month pins, and what a reading without a manifest has so far. Not here: the snapshot (base).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb
from sqlalchemy import Engine

from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import quoted
from pipelines.warehouse.frozen import Copies

PAGES = """
SELECT schema_name, table_name FROM duckdb_columns()
WHERE column_name = '_page' AND schema_name IN ('current', 'quarantine')
"""


@dataclass(frozen=True)
class Dropped:
    """What was dropped, and the room that it took in bytes."""

    manifests: int
    pages: int
    size: int


def old(manifests: Iterable[ManifestRow], keep: int) -> list[ManifestRow]:
    """Return the manifests before the last so many of each stream and connection, in their order.

    A stream's tables are shared by its connections, so none is dropped that was written after one
    that is kept: what is folded afterwards has the order that it had.
    """
    streams: dict[str, list[ManifestRow]] = {}
    for row in manifests:
        streams.setdefault(row.stream, []).append(row)
    return [row for rows in streams.values() for row in rows[: _first_kept(rows, keep)]]


def _first_kept(rows: Sequence[ManifestRow], keep: int) -> int:
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.connection, []).append(place)
    return min(each[-keep:][0] for each in places.values())


@dataclass(frozen=True)
class Retention:
    """What is kept of an archive: all but what a base holds and nothing else needs."""

    archive: Archive
    ledger: Engine
    held: Collection[str]
    since: datetime

    def drop(self, base: duckdb.DuckDBPyConnection) -> Dropped:
        """Remove the manifests that the base holds, and every page that nothing needs."""
        needed = set(self._needed(base))
        manifests = {
            file: size for file, size in self.archive.manifests().items() if file in self.held
        }
        pages = {page: size for page, size in self.archive.pages().items() if page not in needed}
        self.archive.drop(pages, manifests)
        size = sum((*manifests.values(), *pages.values()))
        return Dropped(len(manifests), len(pages), size)

    def _needed(self, base: duckdb.DuckDBPyConnection) -> Iterator[str]:
        """Yield the pages that are needed, as they are now."""
        now = self.archive.now
        for row in journal.every_manifest(self.ledger):
            if row.file not in self.held:
                yield from (now(page.sha256) for page in self.archive.read(row.file).evidence)
        for schema, table in base.execute(PAGES).fetchall():
            found = base.execute(f"SELECT DISTINCT _page FROM {quoted(schema, table)}").fetchall()
            yield from (now(page) for (page,) in found)
        yield from map(now, Copies(self.archive).pinned())
        yield from map(now, journal.unbound(self.ledger, self.since))
