"""Columns that stop: filled in the last reading, and in no record of this one, or from a place on.

Found before the merge from what leaves the tables and what is staged; a table is scanned only for
columns that may have stopped. Said once, and again where a column is back. Nothing is held back for
it: the column stays. Not here: columns that appear or change their type (evolution).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.warehouse import evolution
from pipelines.warehouse.columns import Source, Where, sources
from pipelines.warehouse.database import append, quoted
from pipelines.warehouse.duplicates import joined
from pipelines.warehouse.evolution import Change, What
from pipelines.warehouse.known import Whole
from pipelines.warehouse.survey import Survey, before, staged

NEARLY_ALL = 99  # of 100 records
SAID = {What.STOPPED, What.PARTLY, What.BACK}
LEAVING = """
CREATE OR REPLACE TEMP TABLE fold_leaving AS
SELECT c.rowid AS id, c.{key} AS key FROM {current} c
WHERE c._connection = $connection
AND (c.rowid IN (SELECT id FROM fold_matched) OR c.rowid IN (SELECT id FROM fold_unread))
"""
LEFT = "FROM {current} t WHERE t._connection = $connection AND {leaves} AND {was}"
STAYING = """
FROM (SELECT *, NOT {leaves} AS stays, {was} AS was FROM {current} t
      WHERE t._connection = $connection) t
"""
PAIRS = "FROM {staged} t JOIN {before} c ON c._at = t._at"
Counts = Mapping[str, int]
ROWS = ""  # among the counts of columns: the rows themselves


@dataclass(frozen=True)
class Stops:
    """A reading beside the tables as they were; `absent` are their rows that it lacks."""

    survey: Survey
    key: str
    absent: Whole
    moment: datetime

    def changes(self) -> list[Change]:
        """Return what stopped, wholly or from a place on, and what is back."""
        if not len(self.survey.known.ids):
            return []
        self._leave()
        return [each for table in self.survey.tables for each in _Table(self, table).changes()]

    def _leave(self) -> None:
        """List the rows of the tables that this reading lacks, or read with other bytes."""
        manifest, execute = self.survey.pages.manifest, self.survey.database.execute
        execute("CREATE OR REPLACE TEMP TABLE fold_unread (id BIGINT)")
        append(self.survey.database, "fold_unread", pa.table({"id": self.absent}))
        current = quoted("current", manifest.stream)
        query = LEAVING.format(key=quoted(self.key), current=current)
        execute(query, {"connection": manifest.connection})

    @cached_property
    def said(self) -> dict[Where, What]:
        """What was said last of the columns, of this connection's readings."""
        manifest = self.survey.pages.manifest
        return {
            (each.table, each.column): each.what
            for each in evolution.recorded(self.survey.database, manifest.stream)
            if each.what in SAID and each.manifest.startswith(f"{manifest.connection}/")
        }


@dataclass(frozen=True)
class _Table:
    """One table of a reading."""

    of: Stops
    name: str

    def changes(self) -> Iterator[Change]:
        """Yield what is to be said of its columns."""
        left, came = self._counts(LEFT), self._counts("FROM {staged} t")
        lost = self._lost([each for each in self._parts if left[each] and came[each] < came[ROWS]])
        said = {each: self.of.said.get((self.name, each), What.BACK) for each in self._parts}
        watched = [
            each
            for each in self._parts
            if lost.get(each) or (left[each] and not came[each]) or said[each] is not What.BACK
        ]
        if not watched:
            return
        stay, was = self._counts(STAYING, "t.stays", watched), self._was(list(lost))
        rows = stay[ROWS] + came[ROWS]
        for column in watched if rows else ():
            there, last = stay[column] + came[column], said[column]
            if last is What.BACK and there:
                if column in lost and _nearly(was[column], was[ROWS]):
                    yield from self._partly(column, rows, there)
            elif not there and last is not What.STOPPED:
                yield self._change(column, What.STOPPED, left[column])
            elif there and (last is What.STOPPED or _nearly(there, rows)):
                yield self._change(column, What.BACK, there)

    def _partly(self, column: str, rows: int, there: int) -> Iterator[Change]:
        """Yield where a column ends that nearly all records had before."""
        if _nearly(there, rows):
            return
        filled, empty = self._places(column)
        place = int(filled.max()) + 1 if len(filled) else 0
        lacking = int((empty >= place).sum())
        lost = self._ats(f"{PAIRS} WHERE {self._gone(column)}")
        if (lost >= place).any() and _nearly(there, rows - lacking):
            yield self._change(column, What.PARTLY, lacking, place)

    def _change(self, column: str, what: What, count: int, place: int | None = None) -> Change:
        manifest, path = self.of.survey.pages.manifest, self._sources[column].path
        where = (manifest.stream, self.name, column, path)
        return Change(*where, what, "", "", count, manifest.file, self.of.moment, place)

    @cached_property
    def _sources(self) -> dict[str, Source]:
        survey = self.of.survey
        every = sources(survey.pages.manifest.stream, survey.names.given)
        return {column: each for (table, column), each in every.items() if table == self.name}

    @cached_property
    def _parts(self) -> dict[str, tuple[str, ...]]:
        """The columns, each with those that hold its values: itself, and the text beside it."""
        texts = {each.path: name for name, each in self._sources.items() if each.ending == "__text"}
        described = self.of.survey.database.execute(f"DESCRIBE {staged(self.name)}").fetchall()
        there = {name for name, *_rest in described} - {self.of.key}
        return {
            name: tuple(each for each in (name, texts.get(source.path, "")) if each in there)
            for name, source in self._sources.items()
            if name in there and source.ending in {"", "__count"}
        }

    def _has(self, column: str, row: str = "t") -> str:
        """Return when a row has a column."""
        parts = (f"{row}.{quoted(each)} IS NOT NULL" for each in self._parts[column])
        return f"({' OR '.join(parts)})"

    def _gone(self, column: str) -> str:
        """Return when a record of the tables had a column that its new reading lacks."""
        return f"{self._has(column, 'c')} AND NOT {self._has(column)}"

    def _counts(
        self, query: str, when: str = "true", columns: Iterable[str] | None = None
    ) -> Counts:
        """Return how many rows have each column, and how many there are."""
        names = list(self._parts if columns is None else columns)
        wanted = [when, *(f"{when} AND {self._has(name)}" for name in names)]
        counts = ", ".join(f"count(*) FILTER ({each})" for each in wanted)
        (row,) = self._ran(f"SELECT {counts} {query}").fetchall()
        return dict(zip([ROWS, *names], row, strict=True))

    def _was(self, columns: Sequence[str]) -> Counts:
        return self._counts(STAYING, "t.was", columns) if columns else {}

    def _lost(self, columns: Sequence[str]) -> Counts:
        """Return how many records lost each column, where some did.

        Of child tables nobody asks; without a key a record that says something else is another.
        """
        manifest = self.of.survey.pages.manifest
        if not columns or self.name != manifest.stream or manifest.key is None:
            return {}
        counts = ", ".join(f"count(*) FILTER ({self._gone(each)})" for each in columns)
        (row,) = self._ran(f"SELECT {counts} {PAIRS}").fetchall()
        return {name: count for name, count in zip(columns, row, strict=True) if count}

    def _places(self, column: str) -> tuple[Whole, Whole]:
        """Return the places in the list of the records that have a column, and that lack it."""
        survey, has = self.of.survey, self._has(column)
        came, lack = (self._ats(f"FROM {{staged}} t WHERE {each}") for each in (has, f"NOT {has}"))
        empty = self._known(f"FROM {{current}} t WHERE _connection = $connection AND NOT {has}")
        stays = ~self._known("FROM (SELECT id AS rowid FROM fold_leaving)")
        ids, places = joined(survey.ids), survey.places(joined(survey.ats))
        there, without = places[(stays & ~empty)[ids]], places[(stays & empty)[ids]]
        return np.concatenate([came, there]), np.concatenate([lack, without])

    def _ats(self, query: str) -> Whole:
        """Return the places in the list of the staged readings that a query is about."""
        return self.of.survey.places(self._numbers(f"SELECT t._at {query}"))

    def _known(self, query: str) -> npt.NDArray[np.bool_]:
        """Tell of each known row whether a query finds it."""
        return self.of.survey.known.among(self._numbers(f"SELECT rowid {query}"))

    def _numbers(self, query: str) -> Whole:
        (found,) = self._ran(query).fetchnumpy().values()
        return np.asarray(found, np.int64)

    def _ran(self, query: str) -> duckdb.DuckDBPyConnection:
        manifest = self.of.survey.pages.manifest
        own = self.name == manifest.stream
        leaves = f"t.{quoted(self.of.key)} IN (SELECT key FROM fold_leaving)"
        filled = query.format(
            staged=staged(self.name),
            current=quoted("current", self.name),
            before=before(self.name),
            leaves="t.rowid IN (SELECT id FROM fold_leaving)" if own else leaves,
            was="t.missing_since IS NULL" if own else "true",
        )
        values = {"connection": manifest.connection} if "$connection" in filled else None
        return self.of.survey.database.execute(filled, values)


def _nearly(some: int, rows: int) -> bool:
    return some * 100 >= rows * NEARLY_ALL
