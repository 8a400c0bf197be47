"""Brings earlier rows of `history` to what their columns hold now.

Here: a column that is decided again, and rows that an older partner-sync wrote by other rules. Both
read what a row has in its columns and in `_extra`: together they hold every value. Digests and
times of the rows stay, so no row counts as changed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import NoneType
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.config.types import DeclaredType
from pipelines.core.parse import parse_number
from pipelines.core.text import quote_identifier
from pipelines.load.decode import add_to_extras, extra_text
from pipelines.load.names import Path
from pipelines.load.observe import observe
from pipelines.load.records import SCALE, shortest
from pipelines.load.schema import DECLARED_KINDS, SCALARS, Kind, Place, Schema, field_of
from pipelines.load.store import to_stored
from pipelines.load.values import Sent, parts, to_staged

ZERO: Final = Decimal(0)
ROWS: Final = 50_000  # that are converted at once
SPARE: Final = r"\.[0-9]*0$|[eE]|^-0(\.0+)?$"  # a number that has a shorter spelling
# ISO 4217 has currencies with 0, 2, 3 and 4 digits behind the point.
MONEY: Final = re.compile(r"(?!-0$)-?[0-9]+(\.[0-9]{2,4})?")
HAS_EXTREME_DAY: Final = """
SELECT coalesce(max(history.{column}) >= DATE '9999-12-30'
    OR min(history.{column}) < DATE '0001-01-03', false)
FROM {table} AS history
"""
SELECT_TEXTS: Final = """
SELECT history.{column} FROM {table} AS history WHERE history.{column} IS NOT NULL
"""
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
Change: TypeAlias = tuple[Place, str, str]
"""A place, with the type of its column before and now."""
Extras: TypeAlias = dict[int, Any]
"""What `_extra` has, by row."""


def has_extreme_day(db: duckdb.DuckDBPyConnection, place: Place) -> bool:
    """Return whether a column of days holds one that no column of times can hold."""
    ((found,),) = db.execute(_on(place, HAS_EXTREME_DAY)).fetchall()
    return bool(found)


def stored_texts(db: duckdb.DuckDBPyConnection, place: Place) -> Iterator[pa.Array]:
    """Yield the texts of a column, of every row version."""
    for batch in db.execute(_on(place, SELECT_TEXTS)).to_arrow_reader(ROWS):
        column = batch.column(0)
        yield column.flatten() if place.is_item else column


def have_two_spellings(read: Callable[[], Iterable[pa.Array]]) -> bool:
    """Return whether two number texts spell one number, such as 1.10 and 1.1.

    Amounts of two currencies may, with the digits that each currency has: 90.00 and 90.000.
    """
    spare = defaultdict[str, set[str]](set)
    for texts in read():
        found = texts.filter(pc.match_substring_regex(texts, SPARE))
        for text in pc.unique(found).to_pylist():
            spare[f"{shortest(parse_number(text) or ZERO) or ZERO:f}"].add(text)
    wanted = list[str]()
    for short, texts in spare.items():
        is_money = all(_has_money_scale(text) for text in texts)
        if len(texts) > 1 and not is_money:
            return True
        if not is_money or not _has_money_scale(short):
            wanted.append(short)
    known = pa.array(wanted, pa.string())
    return bool(wanted) and any(pc.any(pc.is_in(each, known)).as_py() for each in read())


def _has_money_scale(text: str) -> bool:
    """Return whether a number has as many digits behind the point as some currency has."""
    return MONEY.fullmatch(text) is not None


def change_types(db: duckdb.DuckDBPyConnection, table: str, changes: Sequence[Change]) -> None:
    """Give columns of a table their new types in every row version.

    What a column of texts does not say exactly then goes to `_extra`. What a column takes only now
    comes back from there.
    """
    whole = [place for place, before, _ in changes if before.startswith("VARCHAR")]
    others = [place for place, *_ in changes if place not in whole and not place.is_item]
    _HistoryRows(db, table, whole, others).rewrite(changes)


def read_again(
    db: duckdb.DuckDBPyConnection, schema: Schema, declared: Mapping[str, DeclaredType]
) -> list[Change]:
    """Apply the rules of now to rows of a stream that were loaded by others; return what changed.

    Columns of texts, and decimals with more digits behind the point than a column has now, are
    decided again from all their values; those with a type in `declared` become that. Values that a
    column takes come back from `_extra`.
    """
    before, changed = schema.types, list[Change]()
    for table in [each.table for each in schema.places.values() if each.is_table]:
        places = [each for each in schema.places.values() if each.table == table]
        places = [each for each in places if each.is_scalar and not each.is_item]
        undecided = [each for each in places if _is_undecided(each, declared)]
        rest = [each for each in places if each not in undecided]
        spelled = {each.name: _spelled(each) for each in undecided}
        for place in undecided:
            _begin_again(place, declared.get(field_of(place.path)))
        _HistoryRows(db, table, undecided, rest, spelled).decide()
        types = schema.types
        whole = [each for each in undecided if types[table, each.name] != before[table, each.name]]
        of_table = [
            (each, before[table, each.name], types[table, each.name])
            for each in places
            if before[table, each.name] != types[table, each.name]
        ]
        others = [each for each in places if each not in whole]
        _HistoryRows(db, table, whole, others, spelled).rewrite(of_table)
        changed += of_table
    return changed


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
    place.kind = Kind.TEXT if declared is None else DECLARED_KINDS[declared.type]
    place.candidates = SCALARS if declared is None else ()
    place.digits = 0
    place.scale = 0


def _spelled(place: Place) -> str:
    """Return the expression of a column's values as text, a time as that of UTC."""
    column = f"history.{quote_identifier(place.name)}"
    if place.kind is Kind.TIME:
        return f"strftime({column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
    return f"CAST({column} AS VARCHAR)"


@dataclass(frozen=True)
class _HistoryRows:
    """The rows of one table of `history`.

    Columns of `whole` are read in all rows, by the expressions of `spelled` if they are no texts
    already; of `others`, only what `_extra` has of them.
    """

    db: duckdb.DuckDBPyConnection
    table: str
    whole: Sequence[Place]
    others: Sequence[Place] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)

    def decide(self) -> None:
        """Settle the types of the columns from all values that their rows have."""
        for batch in self._batches():
            extras = _read_extras(batch)
            for place in (*self.whole, *self.others):
                observe(place, self._staged(place, batch, extras))
        for place in (*self.whole, *self.others):
            place.decide(self._speaks_against)

    def _speaks_against(self, place: Place, kind: Kind) -> bool:
        if kind is Kind.TIME:
            return place.seen.has_extreme_day or has_extreme_day(self.db, place)
        return len(place.seen.scales) > 1 and have_two_spellings(lambda: self._texts(place))

    def _texts(self, place: Place) -> Iterator[pa.Array]:
        for batch in self._batches():
            staged = self._staged(place, batch, _read_extras(batch))
            yield from (part for sent, part in parts(staged) if sent is Sent.TEXT)

    def rewrite(self, changes: Sequence[Change]) -> None:
        """Change types of columns, then write what the columns hold of each value now.

        DuckDB cannot alter a table after an UPDATE in one transaction, so all rows are read first.
        """
        needs_rows = self.whole or self.others
        converted = [self._converted(batch) for batch in self._batches()] if needs_rows else []
        for place, before, now in changes:
            value = quote_identifier(place.name)
            if place in self.whole:
                value = "NULL"
            elif before == "DATE":
                value = f"timezone('UTC', CAST({value} AS TIMESTAMP))"
            if place.kind is Kind.TIME:
                offset = quote_identifier(f"{place.name}__offset")
                self.db.execute(_on(place, ADD_OFFSET, offset=offset))
            self.db.execute(_on(place, SET_TYPE, type=now, value=value))
        for rows in converted:
            self._write(rows)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows: number, `_extra`, and the columns of `whole` as text."""
        names = {each.name: quote_identifier(each.name) for each in self.whole}
        columns = {name: self.spelled.get(name, f"history.{each}") for name, each in names.items()}
        texts = (f", {column} AS {names[name]}" for name, column in columns.items())
        query = SELECT_ROWS.format(
            table=f"history.{quote_identifier(self.table)}",
            columns="".join(texts),
            condition="true" if self.whole else "history._extra IS NOT NULL",
        )
        yield from self.db.execute(query).to_arrow_reader(ROWS)

    def _staged(self, place: Place, batch: pa.RecordBatch, extras: Extras) -> pa.Array:
        """Return the values of a place in some rows, as they were sent where `_extra` says that."""
        if place.is_item:
            return batch.column(place.name)
        values: list[Any] = [None] * len(batch)
        if place.name in batch.schema.names:
            values = batch.column(place.name).to_pylist()
        for row, extra in extras.items():
            found = _find(extra, place.of_row)
            if type(found) in {str, bool}:
                values[row] = found
        return to_staged(values, {*map(type, values)} - {NoneType})

    def _converted(self, batch: pa.RecordBatch) -> pa.Table:
        """Return rows as they are to be written. Of `others`, NULL: the column stays as it is."""
        columns = {"_number": batch.column("_number")}
        extras, left = _read_extras(batch), dict[int, dict[Path, Any]]()
        for place in (*self.whole, *self.others):
            slow = place.copy()
            slow.seen.odd.update(Kind)
            stored = to_stored(slow, self._staged(place, batch, extras))
            columns |= stored.columns
            for row, value in stored.left():
                left.setdefault(row, {})[place.of_row] = value
            for extra in extras.values():
                _remove(extra, place.of_row)
        rests = [extra_text(extras[row]) if extras.get(row) else None for row in range(len(batch))]
        columns["_extra"] = add_to_extras(pa.array(rests, pa.string()), left)
        return pa.table(columns)

    def _write(self, rows: pa.Table) -> None:
        kept = {each.name for each in self.others} | {
            f"{each.name}__offset" for each in self.others
        }
        terms = []
        for name in rows.column_names[1:]:
            quoted = quote_identifier(name)
            value = (
                f"coalesce(added.{quoted}, history.{quoted})" if name in kept else f"added.{quoted}"
            )
            terms.append(f"{quoted} = {value}")
        table = f"history.{quote_identifier(self.table)}"
        self.db.register("read_again", rows)
        self.db.execute(UPDATE_ROWS.format(table=table, columns=", ".join(terms)))
        self.db.unregister("read_again")


def _read_extras(batch: pa.RecordBatch) -> Extras:
    """Return what `_extra` has, by row."""
    texts = enumerate(batch.column("_extra").to_pylist())
    return {row: json.loads(text) for row, text in texts if text is not None}


def _find(extra: Any, path: Path) -> Any:
    """Return what is at a path in the content of `_extra`."""
    for step in path:
        extra = extra.get(step) if isinstance(extra, dict) else None
    return extra


def _remove(extra: Any, path: Path) -> None:
    """Remove the single value at a path from the content of `_extra`."""
    *outer, last = path
    holder = _find(extra, tuple(outer))
    if isinstance(holder, dict) and type(holder.get(last)) in {str, bool}:
        remove(extra, path)


def remove(extra: Any, path: Path) -> None:
    """Remove what is at a path from the content of `_extra`, and objects that are empty then."""
    *outer, last = path
    holder = _find(extra, tuple(outer))
    del holder[last]
    if not holder and outer:
        remove(extra, tuple(outer))


def _on(place: Place, query: str, **terms: str) -> str:
    table = f"history.{quote_identifier(place.table)}"
    return query.format(table=table, column=quote_identifier(place.name), **terms)
