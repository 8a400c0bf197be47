"""Makes an object whose names are data, such as days, a table with a row for each name.

Here: the rows that were loaded before. What was in a column for each name, or in `_extra`, moves to
the table, in every row version. Digests and times stay, so no row counts as changed. Not here: when
that happens (`Schema.next_map`), and how new records get such rows (`decode.py`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.core import stop
from pipelines.core.text import quote_identifier
from pipelines.load.decode import Batch, TableRows
from pipelines.load.earlier import EarlierValues
from pipelines.load.extras import extra_text, remove
from pipelines.load.history import ADD_COLUMN, CREATE_CHILDREN, create_views
from pipelines.load.paths import MAP_NAME, MAP_VALUE, FieldPath, steps_to_row
from pipelines.load.place import NUMBERS, Kind, Place
from pipelines.load.reread import require_numbers
from pipelines.load.schema import Schema
from pipelines.load.schema_table import write_schema
from pipelines.load.store import store_rows
from pipelines.load.unpivot import MemberColumns, Unpivot, common_type, flat_columns
from pipelines.load.values import texts_sent
from pipelines.load.whole_column import have_two_spellings

# Values that are read and converted together.
VALUES_AT_ONCE: Final = 500_000
# A value of each kind, of which `Schema.place` makes a place.
SAMPLES: Final[dict[Kind, Any]] = {
    Kind.TEXT: "",
    Kind.LIST: [""],
    Kind.OBJECT: {"": ""},
    Kind.MAP: {"": ""},
}
# What the new rows have in common with the row that their values were in.
FROM_ROW: Final = ("_connection", "_valid_from", "_valid_to")
RENAME: Final = "ALTER TABLE history.{table} RENAME TO {new_name}"
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
# Rows whose values have moved, with what is left of `_extra`. REWRITE puts that into the table.
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


def make_map(db: duckdb.DuckDBPyConnection, schema: Schema, path: FieldPath) -> None:
    """Make the object at a path a map, in the schema of a stream and in its rows of `history`."""
    table = schema.places.get(path[: steps_to_row(path)])
    # Without a table, the object is in a list that no row has yet.
    if table is None:
        return
    require_numbers(db, table.table)
    earlier_places = _take_places(schema, path)
    for place in earlier_places.values():
        if place.is_table:
            _set_aside(db, place, earlier_places)
    for end in range(len(table.path) + 1, len(path)):
        schema.places.setdefault(path[:end], Place(path[:end], table.table, Kind.OBJECT))
    item = (*path, None)
    schema.place(path, [SAMPLES[Kind.MAP]])
    schema.place(item, [{MAP_NAME: "", MAP_VALUE: ""}])
    schema.place((*item, MAP_NAME), [""])
    earlier = EarlierValues(db, table, path, earlier_places)
    _Conversion(db, schema, table, path, earlier).run()
    write_schema(db, schema)


def _take_places(schema: Schema, path: FieldPath) -> dict[FieldPath, Place]:
    """Remove the places at a path and below it from a schema; return them."""
    taken = {}
    for place_path in list(schema.places):
        if place_path[: len(path)] == path:
            taken[place_path] = schema.places.pop(place_path)
    return taken


def _set_aside(
    db: duckdb.DuckDBPyConnection, table: Place, places: Mapping[FieldPath, Place]
) -> None:
    """Rename a table of items in the object: a new one may have its name."""
    name = table.table
    new_name = f"{name} before"
    drop = DROP_VIEWS.format(table=quote_identifier(name), macro=quote_identifier(f"{name}_as_of"))
    db.execute(drop)
    db.execute(RENAME.format(table=quote_identifier(name), new_name=quote_identifier(new_name)))
    for place in places.values():
        if place.table == name:
            place.table = new_name


@dataclass(frozen=True)
class _Conversion:
    """One object of one stream. `earlier` has its values in the rows of `table`."""

    db: duckdb.DuckDBPyConnection
    schema: Schema
    table: Place
    path: FieldPath
    earlier: EarlierValues

    @property
    def _history(self) -> str:
        """The table of the rows, in SQL."""
        return f"history.{quote_identifier(self.table.table)}"

    @property
    def _value_path(self) -> FieldPath:
        """The path of the values, whatever their names are."""
        return (*self.path, None, MAP_VALUE)

    @property
    def _new_tables(self) -> list[Place]:
        return [table for table in self.schema.tables if table.path[: len(self.path)] == self.path]

    def run(self) -> None:
        """Move the values of every row version."""
        self._copy_structure()
        columns = flat_columns(self.earlier.places, self.path)
        values = self._plain_values(columns)
        # By SQL, a value takes 1 us; read back and decoded, it takes 30 us.
        by_sql = bool(values)
        self._decide(only_extra=by_sql)
        for table in self._new_tables:
            self._create(table)
        self.db.execute(CREATE_DONE)
        for rows in self._batches(only_extra=by_sql):
            self._insert(rows)
        if by_sql:
            Unpivot(self.table, self._new_tables[0], columns, values).run(self.db)
        self._rewrite()
        for place in self.earlier.places.values():
            if place.is_table:
                self.db.execute(DROP.format(table=quote_identifier(place.table)))
        for table in (self.table, *self._new_tables):
            create_views(self.db, self.schema, table)

    def _plain_values(self, columns: MemberColumns) -> dict[FieldPath, Place]:
        """Return the places of the values, if they hold what is in the columns as it is."""
        places = {}
        for member in columns.values():
            for path in member:
                place = self.schema.places.get((*self._value_path, *path))
                if place is None or not place.is_scalar or place.is_new:
                    return {}
                places[path] = place
        return places

    def _copy_structure(self) -> None:
        """Give the values the structure and the types that they have in columns."""
        columns = defaultdict[FieldPath, list[Place]](list)
        for path, place in self.earlier.places.items():
            if len(path) > len(self.path):
                inner = path[len(self.path) + 1 :]
                columns[*self._value_path, *inner].append(place)
        # From the outside in: a place is made in the one around it.
        for path in sorted(columns, key=len):
            outer = self.schema.places.get(path[:-1])
            if outer is not None and not outer.is_scalar:
                self._copy_place(path, columns[path])

    def _copy_place(self, path: FieldPath, columns: Sequence[Place]) -> None:
        """Make a place that holds what several columns held; text, if they have no type in common.

        What a column did not take stays in `_extra`, unless the new one takes it.
        """
        kinds = {Kind.TEXT if column.is_scalar else column.kind for column in columns}
        if len(kinds) > 1:
            self.schema.kinds[path] = Kind.TEXT
            return
        (kind,) = kinds
        if kind is Kind.MAP:
            self.schema.maps |= {path}
        place = self.schema.place(path, [SAMPLES[kind]])
        if place is None or place.declared is not None:
            return
        if not place.is_scalar:
            place.is_new = False
            return
        common = common_type(self.db, columns)
        if common is not None:
            place.kind = common.kind
            place.scale = common.scale
            place.digits = common.digits
            place.candidates = common.candidates
            place.is_new = False

    def _decide(self, *, only_extra: bool) -> None:
        """Settle the types of the new columns from the values that are read one by one."""
        self._read_all(only_extra=only_extra)
        misread = self.schema.misread()
        while misread:
            self.schema.kinds |= misread
            for path in misread:
                _take_places(self.schema, path)
            self.schema.shapes.clear()
            self._read_all(only_extra=only_extra)
            misread = self.schema.misread()
        for path, place in self.schema.places.items():
            is_value = path[: len(self._value_path)] == self._value_path
            if is_value and (place.is_new or place.kind in NUMBERS):
                place.decide(self._forbids)

    def _read_all(self, *, only_extra: bool) -> None:
        """Read the values, so that the schema knows them."""
        for rows in self._batches(only_extra=only_extra):
            self._decoded(rows)

    def _forbids(self, place: Place, kind: Kind) -> bool:
        if kind is Kind.TIME:
            return place.seen.has_extreme_day
        return have_two_spellings(place, lambda: self._texts(place))

    def _texts(self, place: Place) -> Iterator[pa.Array]:
        """Yield the values of a place that were sent as text."""
        for rows in self._batches(only_extra=False):
            for new_rows in self._decoded(rows).tables:
                if new_rows.place.table == place.table and place.name in new_rows.columns:
                    yield from texts_sent(new_rows.columns[place.name])

    def _batches(self, *, only_extra: bool) -> Iterator[pa.Table]:
        """Yield rows whose values are read one by one: all, or those with some in `_extra`."""
        columns = self.earlier.columns(self.table.table)
        selected = []
        for name, expression in columns.items():
            selected.append(f", {expression} AS {quote_identifier(name)}")
        query = SELECT_ROWS.format(
            key=self.table.key,
            indexes="".join(f"history.{name}, " for name in self.table.indexes),
            columns="".join(selected),
            table=self._history,
            condition=self._condition(columns, only_extra=only_extra),
        )
        ((least, last),) = self.db.execute(ROW_NUMBERS.format(table=self._history)).fetchall()
        rows_at_once = max(1, VALUES_AT_ONCE // max(1, len(columns)))
        for first in range(least, last + 1, rows_at_once):
            stop.raise_if_requested()
            terms = {"first": first, "end": first + rows_at_once}
            rows = self.db.execute(query, terms).to_arrow_table()
            if only_extra:
                has_values = map(self._has_values, rows["_extra"].to_pylist())
                rows = rows.filter(pa.array(has_values, pa.bool_()))
            if len(rows):
                yield rows.combine_chunks()

    def _condition(self, columns: Mapping[str, str], *, only_extra: bool) -> str:
        """Return the condition of rows that may have a value."""
        names = ["_extra"]
        if not only_extra:
            if any(place.is_table for place in self.earlier.places.values()):
                return "true"
            names += columns
        return " OR ".join(f"history.{quote_identifier(name)} IS NOT NULL" for name in names)

    def _has_values(self, extra: str | None) -> bool:
        """Return whether the text of `_extra` of a row has values of the object."""
        return isinstance(self.earlier.in_extra(extra), dict)

    def _decoded(self, rows: pa.Table) -> Batch:
        """Return rows of the new tables, made of the values of some rows."""
        batch = Batch(self.schema)
        indexes = [rows[name].to_numpy() for name in self.table.indexes]
        around = TableRows(self.table, np.arange(len(rows)), indexes)
        batch.add_at(around, self.path, self.earlier.read(rows))
        return batch

    def _create(self, table: Place) -> None:
        """Create a table."""
        history = f"history.{quote_identifier(table.table)}"
        indexes = ", ".join(f"{name} BIGINT" for name in table.indexes)
        self.db.execute(CREATE_CHILDREN.format(history=history, indexes=indexes))
        for (owner, name), column_type in self.schema.types.items():
            if owner == table.table:
                column = quote_identifier(name)
                add = ADD_COLUMN.format(history=history, column=column, type=column_type)
                self.db.execute(add)

    def _insert(self, rows: pa.Table) -> None:
        """Insert rows of the new tables, and note what is left of `_extra` of the rows."""
        position = pa.array(range(len(rows)), pa.int64())
        keys = rows[self.table.key].combine_chunks()
        index = pa.RecordBatch.from_pydict({"_position": position, "_key": keys})
        # A move is no load: what its columns do not take is in no finding.
        counts = Counter[FieldPath]()
        for new_rows in self._decoded(rows).tables:
            table = new_rows.place.table
            places = self.schema.columns_of(table)
            columns = store_rows(places, new_rows.to_arrow(index), counts, counts)
            positions = columns.pop("_position")
            for name in FROM_ROW:
                columns[name] = rows[name].combine_chunks().take(positions)
            self._run(INSERT, pa.table(columns), table)
        extras = [self._without_values(text) for text in rows["_extra"].to_pylist()]
        done = pa.table({"_number": rows["_number"], "_extra": pa.array(extras, pa.string())})
        self._run(INSERT_DONE, done)

    def _without_values(self, text: str | None) -> str | None:
        """Return the text of `_extra` without what moves."""
        if text is None or not self._has_values(text):
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
        moved = [*self.earlier.columns(self.table.table)]
        moved += [
            f"{place.name}__offset"
            for place in self.earlier.places.values()
            if place.kind is Kind.TIME and place.table == self.table.table
        ]
        without = ""
        if moved:
            without = f"EXCLUDE ({', '.join(map(quote_identifier, moved))})"
        self.db.execute(REWRITE.format(table=self._history, without=without))
