"""Brings earlier rows of `history` to what their columns hold now.

Here: a column that is decided again, and rows that an older partner-sync wrote by other rules. Both
read what a row has in its columns and in `_extra`: together they hold every value. Digests and
times of the rows stay, so no row counts as changed. Not here: which rows are read again
(`older.py`), and objects that become maps (`maps.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.config.types import DeclaredType
from pipelines.core.errors import LoadFailed
from pipelines.core.text import quote_identifier
from pipelines.load.extras import (
    Extras,
    ExtraValues,
    add_to_extras,
    extra_text,
    find,
    is_single,
    read_extras,
    remove_single,
)
from pipelines.load.observe import observe
from pipelines.load.paths import TAKEN, field_of
from pipelines.load.place import DECLARED_KINDS, SCALARS, Kind, Place
from pipelines.load.records import SCALE
from pipelines.load.schema import ColumnTypes, Schema
from pipelines.load.store import to_stored
from pipelines.load.values import texts_sent, to_staged
from pipelines.load.whole_column import ROWS_AT_ONCE, has_extreme_day, have_two_spellings, on_column

SELECT_ROWS: Final = """
SELECT history.rowid AS _number, history._extra{columns} FROM {table} AS history
WHERE {condition}
"""
SET_TYPE: Final = "ALTER TABLE {table} ALTER COLUMN {column} SET DATA TYPE {type} USING {value}"
ADD_OFFSET: Final = "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {offset} VARCHAR"
UPDATE_ROWS: Final = """
UPDATE {table} AS history SET {columns}
FROM read_again AS added
WHERE added._number = history.rowid
"""
HIDES_NUMBERS: Final = """
SELECT count(*) > 0 FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND columns.schema_name = 'history'
    AND columns.table_name = ? AND lower(columns.column_name) = ?
"""


class TypeChange(NamedTuple):
    """A column whose type changes."""

    place: Place
    before: str
    now: str


def require_numbers(db: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise LoadFailed for a table whose rows have no numbers: a column of data has their name."""
    ((hides_numbers,),) = db.execute(HIDES_NUMBERS, [table, TAKEN]).fetchall()
    if hides_numbers:
        raise LoadFailed(
            f"Rows of {table} cannot be read again, because an older partner-sync gave the field "
            f"`{TAKEN}` a column of this name. Nothing was changed.",
            "Run `partner-sync versions rebuild`, which gives the column another name.",
        )


def change_types(db: duckdb.DuckDBPyConnection, table: str, changes: Sequence[TypeChange]) -> None:
    """Give columns of a table their new types in every row version.

    What a column of texts does not say exactly then goes to `_extra`. What a column takes only now
    comes back from there.
    """
    whole = []
    others = []
    for change in changes:
        if change.before.startswith("VARCHAR"):
            whole.append(change.place)
        elif not change.place.is_item:
            others.append(change.place)
    _HistoryRows(db, table, whole, others).rewrite(changes)


def read_again(
    db: duckdb.DuckDBPyConnection, schema: Schema, declared: Mapping[str, DeclaredType]
) -> None:
    """Apply the rules of now to rows of a stream that were loaded by others.

    Columns of texts, and decimals with more digits behind the point than a column has now, are
    decided again from all their values; those with a type in `declared` become that. Values that a
    column takes come back from `_extra`.
    """
    for table in schema.tables:
        _read_table_again(db, schema, table.table, declared)


def _read_table_again(
    db: duckdb.DuckDBPyConnection,
    schema: Schema,
    table: str,
    declared: Mapping[str, DeclaredType],
) -> None:
    """Decide the types of a table's columns again, then write its rows with these types."""
    types_before = schema.types
    places = [place for place in schema.columns_of(table).values() if not place.is_item]
    undecided = [place for place in places if _is_undecided(place, declared)]
    # The expressions go by the types that the columns still have.
    as_text = {place.name: _as_text(place) for place in undecided}
    for place in undecided:
        _begin_again(place, declared.get(field_of(place.path)))
    _HistoryRows(db, table, undecided, _without(places, undecided), as_text).decide()
    changes = _type_changes(places, types_before)
    changed = {change.place.name for change in changes}
    # Of a column that keeps its type, only what comes back from `_extra` is written.
    whole = [place for place in undecided if place.name in changed]
    _HistoryRows(db, table, whole, _without(places, whole), as_text).rewrite(changes)


def _without(places: Sequence[Place], left_out: Sequence[Place]) -> list[Place]:
    return [place for place in places if place not in left_out]


def _type_changes(places: Sequence[Place], types_before: ColumnTypes) -> list[TypeChange]:
    """Return which columns have another type than before."""
    changes = []
    for place in places:
        before = types_before[place.table, place.name]
        if before != place.column_type:
            changes.append(TypeChange(place, before, place.column_type))
    return changes


def _is_undecided(place: Place, declared: Mapping[str, DeclaredType]) -> bool:
    """Return whether the type of a column is found anew."""
    if place.is_map_name:
        return False
    if place.declared != declared.get(field_of(place.path)):
        return True
    return place.declared is None and (place.kind is Kind.TEXT or place.scale > SCALE)


def _begin_again(place: Place, declared: DeclaredType | None) -> None:
    """Make the place of a column one whose type is not known."""
    place.is_new = True
    place.declared = declared
    place.digits = 0
    place.scale = 0
    if declared is None:
        place.kind = Kind.TEXT
        place.candidates = SCALARS
    else:
        place.kind = DECLARED_KINDS[declared.type]
        place.candidates = ()


def _as_text(place: Place) -> str:
    """Return the expression of a column's values as text, a time as that of UTC."""
    column = f"history.{quote_identifier(place.name)}"
    if place.kind is Kind.TIME:
        return f"strftime({column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
    return f"CAST({column} AS VARCHAR)"


@dataclass(frozen=True)
class _HistoryRows:
    """The rows of one table of `history`.

    Columns of `whole` are read in all rows, by the expressions of `as_text` if they are no texts
    already; of `others`, only what `_extra` has of them.
    """

    db: duckdb.DuckDBPyConnection
    table: str
    whole: Sequence[Place]
    others: Sequence[Place]
    as_text: Mapping[str, str] = field(default_factory=dict)

    @property
    def _places(self) -> list[Place]:
        return [*self.whole, *self.others]

    def decide(self) -> None:
        """Settle the types of the columns from all values that their rows have."""
        for batch in self._batches():
            extras = read_extras(batch.column("_extra"))
            for place in self._places:
                observe(place, self._staged(place, batch, extras))
        for place in self._places:
            place.decide(self._forbids)

    def _forbids(self, place: Place, kind: Kind) -> bool:
        if kind is Kind.TIME:
            return place.seen.has_extreme_day or has_extreme_day(self.db, place)
        return have_two_spellings(place, lambda: self._texts(place))

    def _texts(self, place: Place) -> Iterator[pa.Array]:
        for batch in self._batches():
            yield from texts_sent(self._staged(place, batch, read_extras(batch.column("_extra"))))

    def rewrite(self, changes: Sequence[TypeChange]) -> None:
        """Change types of columns, then write what the columns hold of each value now."""
        # DuckDB cannot alter a table after an UPDATE in one transaction: first read all rows.
        converted = []
        if self._places:
            converted = [self._converted(batch) for batch in self._batches()]
        for change in changes:
            self._alter(change)
        for rows in converted:
            self._write(rows)

    def _alter(self, change: TypeChange) -> None:
        """Change the type of one column; one that is read whole is NULL until it is written."""
        place = change.place
        value = quote_identifier(place.name)
        if place in self.whole:
            value = "NULL"
        elif change.before == "DATE":
            value = f"timezone('UTC', CAST({value} AS TIMESTAMP))"
        if place.kind is Kind.TIME:
            offset = quote_identifier(f"{place.name}__offset")
            self.db.execute(on_column(ADD_OFFSET, place, offset=offset))
        self.db.execute(on_column(SET_TYPE, place, type=change.now, value=value))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows: number, `_extra`, and the columns of `whole` as text.

        Raises LoadFailed.
        """
        require_numbers(self.db, self.table)
        columns = []
        for place in self.whole:
            name = quote_identifier(place.name)
            as_text = self.as_text.get(place.name, f"history.{name}")
            columns.append(f", {as_text} AS {name}")
        query = SELECT_ROWS.format(
            table=f"history.{quote_identifier(self.table)}",
            columns="".join(columns),
            condition="true" if self.whole else "history._extra IS NOT NULL",
        )
        yield from self.db.execute(query).to_arrow_reader(ROWS_AT_ONCE)

    def _staged(self, place: Place, batch: pa.RecordBatch, extras: Extras) -> pa.Array:
        """Return the values of a place in some rows, as they were sent where `_extra` says that."""
        if place.is_item:
            return batch.column(place.name)
        values: list[Any] = [None] * len(batch)
        if place.name in batch.schema.names:
            values = batch.column(place.name).to_pylist()
        path = place.path_in_row
        for row, extra in extras.items():
            in_extra = find(extra, path)
            if is_single(in_extra):
                values[row] = in_extra
        return to_staged(values, {*map(type, values)} - {NoneType})

    def _converted(self, batch: pa.RecordBatch) -> pa.Table:
        """Return rows as they are to be written. Of `others`, NULL: the column stays as it is."""
        columns = {"_number": batch.column("_number")}
        extras = read_extras(batch.column("_extra"))
        added: ExtraValues = {}
        for place in self._places:
            # Nobody has looked at all of these values, so none may be stored by a cast alone.
            careful = place.copy()
            careful.seen.one_by_one.update(Kind)
            stored = to_stored(careful, self._staged(place, batch, extras))
            columns |= stored.arrays
            path = place.path_in_row
            for row, value in stored.for_extra():
                added.setdefault(row, {})[path] = value
            for extra in extras.values():
                remove_single(extra, path)
        texts: list[str | None] = [None] * len(batch)
        for row, extra in extras.items():
            if extra:
                texts[row] = extra_text(extra)
        columns["_extra"] = add_to_extras(pa.array(texts, pa.string()), added)
        return pa.table(columns)

    def _write(self, rows: pa.Table) -> None:
        names_of_others = set[str]()
        for place in self.others:
            names_of_others.update((place.name, f"{place.name}__offset"))
        terms = []
        for name in rows.column_names[1:]:
            column = quote_identifier(name)
            value = f"added.{column}"
            if name in names_of_others:
                value = f"coalesce(added.{column}, history.{column})"
            terms.append(f"{column} = {value}")
        table = f"history.{quote_identifier(self.table)}"
        self.db.register("read_again", rows)
        self.db.execute(UPDATE_ROWS.format(table=table, columns=", ".join(terms)))
        self.db.unregister("read_again")
