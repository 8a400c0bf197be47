"""Makes an object whose names are data, such as days, a table with a row for each name.

Here: the rows that were loaded before. What was in a column for each name, or in `_extra`, moves to
the table, in every row version. Digests and times stay, so no row counts as changed. Not here: when
that happens (`Schema.crowded`), and how new records get such rows (`decode.py`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.core import stop
from pipelines.core.text import quote_identifier
from pipelines.load.decode import Batch, Rows, extra_text
from pipelines.load.earlier import Earlier
from pipelines.load.history import ADD_COLUMN, CREATE_CHILDREN, create_views
from pipelines.load.names import MAP_NAME, MAP_VALUE, Path
from pipelines.load.reread import have_two_spellings, remove
from pipelines.load.schema import Kind, Place, Schema, write_schema
from pipelines.load.stage import store_rows
from pipelines.load.unpivot import Columns, Unpivot, common_type, flat_columns
from pipelines.load.values import Sent, parts

VALUES: Final = 500_000  # that are converted at once
SAMPLES: Final[dict[Kind, Any]] = {
    Kind.TEXT: "",
    Kind.LIST: [""],
    Kind.OBJECT: {"": ""},
    Kind.MAP: {"": ""},
}
ABOUT: Final = ("_connection", "_valid_from", "_valid_to")
RENAME: Final = "ALTER TABLE history.{table} RENAME TO {earlier}"
DROP_VIEWS: Final = "DROP VIEW current.{table}; DROP MACRO TABLE history.{macro};"
DROP: Final = "DROP TABLE history.{table}"
# Rows that this transaction wrote have numbers from 2 ** 55 or so on.
ROW_NUMBERS: Final = """
SELECT coalesce(min(history.rowid), 0), coalesce(max(history.rowid), -1) FROM {table} AS history
"""
SELECT_ROWS: Final = """
SELECT history.rowid AS _number, history._connection, history.{key}, {indexes}
    history._valid_from, history._valid_to, history._extra{columns}
FROM {table} AS history
WHERE history.rowid >= $first AND history.rowid < $end AND ({condition})
"""
CREATE_DONE: Final = """
CREATE OR REPLACE TEMP TABLE map_rows (_number BIGINT, _extra VARCHAR)
"""
INSERT_DONE: Final = "INSERT INTO map_rows SELECT added.* FROM map_added AS added"
INSERT: Final = "INSERT INTO {table} BY NAME SELECT added.* FROM map_added AS added"
REWRITE: Final = """
CREATE OR REPLACE TABLE {table} AS
SELECT history.* {without}
    REPLACE (if(map_rows._number IS NULL, history._extra, map_rows._extra) AS _extra)
FROM {table} AS history
LEFT JOIN map_rows ON map_rows._number = history.rowid
"""


def make_map(db: duckdb.DuckDBPyConnection, schema: Schema, path: Path) -> None:
    """Make the object at a path a map, in the schema of a stream and in its rows of `history`."""
    table = _row_of(schema, path)
    if table is None:
        return  # a list that no row has yet
    places = {at: each for at, each in schema.places.items() if at[: len(path)] == path}
    for at in places:
        del schema.places[at]
    for each in [each for each in places.values() if each.is_table]:
        _set_aside(db, each, places)
    for end in range(len(table.path) + 1, len(path)):
        schema.places.setdefault(path[:end], Place(path[:end], table.table, Kind.OBJECT))
    item = (*path, None)
    for at, value in ((path, {}), (item, {MAP_NAME: "", MAP_VALUE: ""}), ((*item, MAP_NAME), "")):
        schema.place(at, [{"": ""} if value == {} else value])
    _Conversion(db, schema, table, path, Earlier(db, table, path, places)).run()
    write_schema(db, schema)


def _row_of(schema: Schema, path: Path) -> Place | None:
    """Return the place whose table has a row around a path."""
    start = len(path) - [*reversed(path), None].index(None)
    return schema.places.get(path[:start])


def _set_aside(db: duckdb.DuckDBPyConnection, table: Place, places: Mapping[Path, Place]) -> None:
    """Rename a table of items in the object: a new one may have its name."""
    name, earlier = table.table, f"{table.table} before"
    names = {"table": quote_identifier(name), "earlier": quote_identifier(earlier)}
    db.execute(DROP_VIEWS.format(**names, macro=quote_identifier(f"{name}_as_of")))
    db.execute(RENAME.format(**names))
    for each in places.values():
        if each.table == name:
            each.table = earlier


@dataclass(frozen=True)
class _Conversion:
    """One object of one stream. `earlier` has its values in the rows of `table`."""

    db: duckdb.DuckDBPyConnection
    schema: Schema
    table: Place
    path: Path
    earlier: Earlier
    counts: Counter[Path] = field(default_factory=Counter)

    @property
    def _rows(self) -> str:
        return f"history.{quote_identifier(self.table.table)}"

    @property
    def _value(self) -> Path:
        return (*self.path, None, MAP_VALUE)

    @property
    def _tables(self) -> list[Place]:
        """The new tables."""
        end = len(self.path)
        places = self.schema.places.items()
        return [each for at, each in places if each.is_table and at[:end] == self.path]

    def run(self) -> None:
        """Move the values of every row version."""
        self._begin()
        columns = flat_columns(self.earlier.places, self.path)
        values = self._values(columns)
        is_plain = bool(values)
        self._decide(is_plain=is_plain)
        for table in self._tables:
            self._create(table)
        self.db.execute(CREATE_DONE)
        for rows in self._batches(is_plain=is_plain):
            self._insert(rows)
        if is_plain:
            Unpivot(self.table, self._tables[0], columns, values).run(self.db)
        self._rewrite()
        for each in [each for each in self.earlier.places.values() if each.is_table]:
            self.db.execute(DROP.format(table=quote_identifier(each.table)))
        for table in (self.table, *self._tables):
            create_views(self.db, self.schema, table)

    def _values(self, columns: Columns) -> dict[Path, Place]:
        """Return the places of the values, if they hold what is in the columns as it is."""
        found = {}
        for at in dict.fromkeys(at for each in columns.values() for at in each):
            place = self.schema.places.get((*self._value, *at))
            if place is None or not place.is_scalar or place.is_new:
                return {}
            found[at] = place
        return found

    def _begin(self) -> None:
        """Give the values the structure and the types that they have in columns."""
        found = defaultdict[Path, list[Place]](list)
        for at, place in self.earlier.places.items():
            if len(at) > len(self.path):
                found[*self._value, *at[len(self.path) + 1 :]].append(place)
        for at in sorted(found, key=len):
            outer = self.schema.places.get(at[:-1])
            if outer is not None and not outer.is_scalar:
                self._begin_place(at, found[at])

    def _begin_place(self, at: Path, columns: Sequence[Place]) -> None:
        """Make a place that holds what several columns held; text, if they have no type in common.

        What a column did not take stays in `_extra`, unless the new one takes it.
        """
        kinds = {Kind.TEXT if each.is_scalar else each.kind for each in columns}
        if len(kinds) > 1:
            self.schema.kinds[at] = Kind.TEXT
            return
        (kind,) = kinds
        if kind is Kind.MAP:
            self.schema.maps |= {at}
        place = self.schema.place(at, [SAMPLES[kind]])
        if place is None or place.declared is not None:
            return
        found = common_type(self.db, columns) if place.is_scalar else place
        if found is not None:
            place.kind, place.scale, place.digits = found.kind, found.scale, found.digits
            place.candidates, place.is_new = found.candidates, False

    def _decide(self, *, is_plain: bool) -> None:
        """Settle the types of the new columns from the values that are read one by one."""
        while True:
            for rows in self._batches(is_plain=is_plain):
                self._decoded(rows)
            misread = self.schema.misread()
            if not misread:
                break
            self.schema.kinds |= misread
            for path in misread:
                for at in [at for at in self.schema.places if at[: len(path)] == path]:
                    del self.schema.places[at]
            self.schema.shapes.clear()
        for at, place in self.schema.places.items():
            is_open = place.is_new or place.kind in {Kind.INTEGER, Kind.DECIMAL}
            if is_open and at[: len(self._value)] == self._value:
                place.decide(self._speaks_against)

    def _speaks_against(self, place: Place, kind: Kind) -> bool:
        if kind is Kind.TIME:
            return place.seen.has_extreme_day
        return len(place.seen.scales) > 1 and have_two_spellings(lambda: self._texts(place))

    def _texts(self, place: Place) -> Iterator[pa.Array]:
        for rows in self._batches(is_plain=False):
            for each in self._decoded(rows).tables:
                staged = each.columns.get(place.name) if each.place.table == place.table else None
                if staged is not None:
                    items = staged.flatten() if pa.types.is_list(staged.type) else staged
                    yield from (part for sent, part in parts(items) if sent is Sent.TEXT)

    def _batches(self, *, is_plain: bool) -> Iterator[pa.Table]:
        """Yield rows whose values are read one by one: if plain, those with some in `_extra`."""
        columns = self.earlier.columns(self.table.table)
        ((least, last),) = self.db.execute(ROW_NUMBERS.format(table=self._rows)).fetchall()
        size = max(1, VALUES // max(1, len(columns)))
        conditions = ["history._extra IS NOT NULL"]
        if not is_plain:
            names = self.db.execute(f"SELECT * FROM {self._rows} LIMIT 0").description or ()
            known = {each[0] for each in names}.intersection(columns)
            conditions += [f"history.{quote_identifier(name)} IS NOT NULL" for name in known]
            conditions += ["true"] * any(each.is_table for each in self.earlier.places.values())
        query = SELECT_ROWS.format(
            key=self.table.key,
            indexes="".join(f"history.{name}, " for name in self.table.indexes),
            columns="".join(f", {each} AS {quote_identifier(n)}" for n, each in columns.items()),
            table=self._rows,
            condition=" OR ".join(conditions),
        )
        for first in range(least, last + 1, size):
            stop.raise_if_requested()
            rows = self.db.execute(query, {"first": first, "end": first + size}).to_arrow_table()
            if is_plain:
                has_left = map(self._has_left, rows["_extra"].to_pylist())
                rows = rows.filter(pa.array(has_left, pa.bool_()))
            if len(rows):
                yield rows.combine_chunks()

    def _has_left(self, extra: str | None) -> bool:
        return extra is not None and isinstance(self.earlier.left(json.loads(extra)), dict)

    def _decoded(self, rows: pa.Table) -> Batch:
        """Return rows of the new tables, made of the values of some rows."""
        batch = Batch(self.schema)
        indexes = [rows[name].to_numpy() for name in self.table.indexes]
        around = Rows(self.table, np.arange(len(rows)), indexes)
        batch.add_at(around, self.path, self.earlier.read(rows))
        return batch

    def _create(self, table: Place) -> None:
        """Create a table."""
        history = f"history.{quote_identifier(table.table)}"
        indexes = ", ".join(f"{name} BIGINT" for name in table.indexes)
        self.db.execute(CREATE_CHILDREN.format(history=history, indexes=indexes))
        for (owner, name), of_type in self.schema.types.items():
            if owner == table.table:
                column = quote_identifier(name)
                self.db.execute(ADD_COLUMN.format(history=history, column=column, type=of_type))

    def _insert(self, rows: pa.Table) -> None:
        """Insert rows of the new tables, and note what is left of `_extra` of the rows."""
        position = pa.array(range(len(rows)), pa.int64())
        keys = rows[self.table.key].combine_chunks()
        index = pa.RecordBatch.from_pydict({"_position": position, "_key": keys})
        for each in self._decoded(rows).tables:
            places = {at.name: at for at in self.schema.places.values() if at.name}
            places = {name: at for name, at in places.items() if at.table == each.place.table}
            found = store_rows(places, each.to_arrow(index), self.counts, self.counts)
            positions = found.pop("_position")
            about = {name: rows[name].combine_chunks().take(positions) for name in ABOUT}
            self._run(INSERT, pa.table(found | about), each.place.table)
        extras = [self._without(text) for text in rows["_extra"].to_pylist()]
        done = pa.table({"_number": rows["_number"], "_extra": pa.array(extras, pa.string())})
        self._run(INSERT_DONE, done)

    def _without(self, text: str | None) -> str | None:
        """Return the text of `_extra` without what moves."""
        if text is None or not self._has_left(text):
            return text
        extra = json.loads(text)
        remove(extra, self.path[len(self.table.path) :])
        return extra_text(extra) if extra else None

    def _run(self, query: str, added: pa.Table, table: str = "") -> None:
        self.db.register("map_added", added)
        self.db.execute(query.format(table=f"history.{quote_identifier(table)}"))
        self.db.unregister("map_added")

    def _rewrite(self) -> None:
        """Make the table of the rows again, without the columns that moved."""
        columns = self.earlier.columns(self.table.table)
        for place in self.earlier.places.values():
            if place.kind is Kind.TIME and place.table == self.table.table:
                columns[f"{place.name}__offset"] = ""
        without = f"EXCLUDE ({', '.join(map(quote_identifier, columns))})" if columns else ""
        self.db.execute(REWRITE.format(table=self._rows, without=without))
