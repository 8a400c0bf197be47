"""The survey of a manifest: every record is looked up, and what is not known yet is staged.

Staged are records decoded to flat temporary tables, before the fold's transaction: every reading of
them, told apart by `_at`. One pass where the shape does not grow late, else two. Not here: which
reading of a record counts (duplicates), what it changes (merge).
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.errors import LandingFailed
from pipelines.state.journal import LinkedPage
from pipelines.warehouse.database import append, quoted
from pipelines.warehouse.known import NOWHERE, Digests, Known, Whole, as_binary, digests
from pipelines.warehouse.misfits import Aside
from pipelines.warehouse.pages import AT_ONCE, Body, Pages, Portion, Read
from pipelines.warehouse.quarantine import Ward
from pipelines.warehouse.tables import Batch, Flattener, Names

SAMPLE = 16  # pages that are looked at first: they give nearly every shape that the list has
APPENDED = 4  # portions at once: enough for DuckDB's pace, little to hold
ROW = 0xFFFFFFFF  # of a reading (`_at`): the row in its page; above it is the page, by its age


def staged(table: str) -> str:
    """Return the temporary table of what is staged for a table."""
    return quoted(f"staged {table}")


def before(table: str) -> str:
    """Return the temporary table of what the records that are staged were until now (compare)."""
    return quoted(f"before {table}")


@dataclass
class Survey:
    """What one reading of a list holds; `given` are the names that its columns have so far.

    `ids` and `ats` are the readings of known records: their places among these, and when. `flawed`
    are the readings that no table can hold, by key.
    """

    database: duckdb.DuckDBPyConnection
    pages: Pages
    ward: Ward
    known: Known
    given: Any
    names: Names = field(default_factory=Names)
    ids: list[Whole] = field(default_factory=list)
    ats: list[Whole] = field(default_factory=list)
    flawed: list[tuple[str, int, bytes]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    aside: Aside = field(default_factory=Aside)
    _ages: dict[int, int] = field(default_factory=dict)

    def take(self) -> None:
        """Stage every record that is not known; set aside what no table can hold."""
        self._ages = _ages(self.pages.manifest.pages)
        self._sample()
        if not self._fill() and not self._fill():
            raise LandingFailed(
                f"{self.pages.manifest.stream}: its shape grew while the same pages were read "
                "again. This is a defect of partner-sync: please report it. The stream keeps its "
                "last published rows."
            )

    def _sample(self) -> None:
        """Let the shape grow over pages from all parts of the list."""
        count = len(self.pages.manifest.pages)
        for place in sorted({each * count // SAMPLE for each in range(SAMPLE)} if count else ()):
            body = self.pages.body(place)
            found = digests(body.texts)
            portion = Portion()
            portion.add(body, found, body.left(self._unknown(found)))
            if portion.texts:
                self.pages.read(portion)

    def _fill(self) -> bool:
        """Stage all pages; tell whether the shape was wide enough from the first one on."""
        self._clear()
        manifest, shape = self.pages.manifest, self.pages.decoder.shape
        self.names = Names(deepcopy(self.given))
        flattener = Flattener(manifest.stream, shape, manifest.key, self.names)
        empty = flattener.empty()
        self.tables = list(empty)
        for name, table in empty.items():
            types = zip(table.column_names, self.database.from_arrow(table).types, strict=True)
            columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in types)
            self.database.execute(f"CREATE OR REPLACE TEMP TABLE {staged(name)} ({columns})")
        waiting: list[dict[str, pa.Table]] = []
        for portion in self._portions():
            read = self.pages.read(portion)
            self._admit(read)
            self.aside.add(read.decoded.aside)
            if self.pages.decoder.shape != shape:
                continue
            waiting.append(flattener.tables(self._batch(read)))
            if len(waiting) == APPENDED:
                self._append(waiting)
        self._append(waiting)
        return self.pages.decoder.shape == shape

    def _clear(self) -> None:
        self.ward.clear()
        self.aside = Aside()
        for kept in (self.ids, self.ats, self.flawed):
            kept.clear()
        self.drop()

    def drop(self) -> None:
        """Remove what is staged, and what it was compared with."""
        for table in (name(each) for each in self.tables for name in (staged, before)):
            self.database.execute(f"DROP TABLE IF EXISTS {table}")
        self.tables = []

    def _append(self, waiting: list[dict[str, pa.Table]]) -> None:
        for name in self.tables if waiting else ():
            rows = pa.concat_tables([tables[name] for tables in waiting])
            append(self.database, staged(name), rows)
        waiting.clear()

    def _portions(self) -> Iterator[Portion]:
        """Yield what is not known; of a list without a key page by page, as equals are counted."""
        portion = Portion()
        least = AT_ONCE if self.pages.manifest.key is not None else 1
        for body in self.pages.bodies():
            found = digests(body.texts)
            portion.add(body, found, body.left(self._look_up(body, found)))
            if len(portion.texts) >= least:
                yield portion
                portion = Portion()
        if portion.texts:
            yield portion

    def _unknown(self, found: Digests) -> list[int]:
        rows: list[int] = np.flatnonzero(self.known.find(found) == NOWHERE).tolist()
        return rows

    def _look_up(self, body: Body, found: Digests) -> list[int]:
        """Note which rows of a page are known; return the others.

        Without a key its equals have to be counted: nothing is known before.
        """
        if self.pages.manifest.key is None:
            return list(range(len(found)))
        places = self.known.find(found)
        there = np.flatnonzero(places != NOWHERE)
        self.ids.append(places[there])
        self.ats.append(there + self._age(body.page))
        return np.flatnonzero(places == NOWHERE).tolist()

    def _admit(self, read: Read) -> None:
        flawed = self.ward.admit(read)
        if not flawed:
            return
        found = np.concatenate(read.portion.digests)
        for place, key in flawed.items():
            page, row = read.portion.place(place)
            self.flawed.append((key, row + self._age(page), found[place].tobytes()))

    def _age(self, page: LinkedPage) -> int:
        """Return what tells the readings of a page from those before: the first of its `_at`."""
        return self._ages[page.position] << 32

    def places(self, ats: Whole) -> Whole:
        """Return where in the list readings stand: the page's offset and the row in it."""
        places: Whole = self.offsets()[ats >> 32] + (ats & ROW)
        return places

    def offsets(self) -> Whole:
        """Return the offsets of the pages in the order of their answers."""
        return np.array([page.offset for page in self._by_age()], np.int64)

    def page(self, at: int) -> LinkedPage:
        """Return the page that a reading is of."""
        return self._by_age()[at >> 32]

    def repeated(self) -> Whole:
        """Return the readings that the scan proved to be repeats, of the pages that are loaded."""
        repeated, ages = self.pages.manifest.repeated, self._ages
        ats = [(ages[page] << 32) + row for page, row in repeated if page in ages]
        return np.array(ats, np.int64)

    def _by_age(self) -> list[LinkedPage]:
        return sorted(self.pages.manifest.pages, key=lambda page: self._ages[page.position])

    def _batch(self, read: Read) -> Batch:
        parts = read.portion.parts
        digests = as_binary(np.concatenate(read.portion.digests))
        pages = pa.concat_arrays([pa.repeat(page.sha256, len(rows)) for page, rows in parts])
        places = np.concatenate([np.asarray(rows, np.int64) for _, rows in parts])
        ages = np.repeat([self._age(page) for page, _ in parts], [len(rows) for _, rows in parts])
        lying = pa.array(places, pa.int32()), pa.array(places + ages)
        sound = pa.array(read.decoded.rows, pa.int64())
        if len(sound) < len(digests):
            digests, pages = digests.take(sound), pages.take(sound)
            lying = lying[0].take(sound), lying[1].take(sound)
        return Batch(
            records=read.decoded.records,
            pages=pages,
            rows=lying[0],
            keys=read.keys,
            digests=digests,
            ats=lying[1],
            connection=self.pages.manifest.connection,
            run=self.pages.manifest.run,
        )


def _ages(pages: tuple[LinkedPage, ...]) -> dict[int, int]:
    """Return the pages' places in the order of their answers: pages may be asked for ahead."""
    newest = sorted(pages, key=lambda page: (page.answered_at, page.position))
    return {page.position: age for age, page in enumerate(newest)}
