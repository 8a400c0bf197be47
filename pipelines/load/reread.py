"""Brings earlier rows of `history` to what their columns hold now.

Here: a column that is decided again, and rows that an older partner-sync wrote by other rules. Both
read what a row has in its columns and in `_extra`: together they hold every value. Digests and
times of the rows stay, so no row counts as changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.parse import parse_number
from pipelines.core.text import quote_identifier
from pipelines.load.decode import add_to_extras
from pipelines.load.records import shortest
from pipelines.load.schema import Kind, Path, Place
from pipelines.load.store import to_stored

ZERO: Final = Decimal(0)
ROWS: Final = 50_000  # that are converted at once
SPARE: Final = r"\.[0-9]*0$|[eE]|^-0(\.0+)?$"  # a number that has a shorter spelling
HAS_EXTREME_DAY: Final = """
SELECT coalesce(max(history.{column}) >= DATE '9999-12-30'
    OR min(history.{column}) < DATE '0001-01-03', false)
FROM {table} AS history
"""
SELECT_TEXTS: Final = """
SELECT history.{column} FROM {table} AS history WHERE history.{column} IS NOT NULL
"""
SELECT_ROWS: Final = """
SELECT history.rowid AS _number, history._extra, {columns} FROM {table} AS history
"""
SET_TYPE: Final = "ALTER TABLE {table} ALTER COLUMN {column} SET DATA TYPE {type} USING {value}"
UPDATE_ROWS: Final = """
UPDATE {table} AS history SET {columns}
FROM read_again AS added
WHERE added._number = history.rowid
"""


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
    """Return whether two number texts spell one number, such as 1.10 and 1.1."""
    spare = set[str]()
    for texts in read():
        spare.update(pc.unique(texts.filter(pc.match_substring_regex(texts, SPARE))).to_pylist())
    short = {f"{shortest(parse_number(text) or ZERO) or ZERO:f}" for text in spare}
    if len(short) < len(spare):
        return True
    wanted = pa.array(sorted(short), pa.string())
    return any(pc.any(pc.is_in(texts, wanted)).as_py() for texts in read()) if short else False


def change_types(db: duckdb.DuckDBPyConnection, changes: Sequence[tuple[Place, str, str]]) -> None:
    """Give columns of one table their new types in every row version: place, type before and now.

    What a column of texts does not say exactly then goes to `_extra`. DuckDB cannot alter a table
    after an UPDATE in one transaction, so rows are written when all types are changed.
    """
    texts = [place for place, before, _ in changes if before.startswith("VARCHAR")]
    converted = _convert_texts(db, texts) if texts else []
    for place, before, now in changes:
        value = quote_identifier(place.name)
        if place in texts:
            value = "NULL"
        elif before == "DATE":
            value = f"timezone('UTC', CAST({value} AS TIMESTAMP))"
        db.execute(_on(place, SET_TYPE, type=now, value=value))
    for rows in converted:
        _write_again(db, texts[0].table, rows)


def _convert_texts(db: duckdb.DuckDBPyConnection, places: Sequence[Place]) -> list[pa.Table]:
    """Return all rows of a table, with what columns of texts hold of theirs now."""
    slow = [place.copy() for place in places]
    for place in slow:
        place.seen.odd.update(Kind)
    columns = ", ".join(f"history.{quote_identifier(place.name)}" for place in places)
    reader = db.execute(_on(places[0], SELECT_ROWS, columns=columns)).to_arrow_reader(ROWS)
    return [_convert(slow, batch) for batch in reader]


def _convert(places: Sequence[Place], batch: pa.RecordBatch) -> pa.Table:
    columns = {"_number": batch.column("_number")}
    left = dict[int, dict[Path, Any]]()
    for place in places:
        stored = to_stored(place, batch.column(place.name))
        columns |= stored.columns
        for row, value in stored.left():
            left.setdefault(row, {})[place.of_row] = value
    columns["_extra"] = add_to_extras(batch.column("_extra"), left)
    return pa.table(columns)


def _write_again(db: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Update rows of a table of `history`: column `_number` has their rowid."""
    names = [quote_identifier(name) for name in rows.column_names if name != "_number"]
    terms = {
        "table": f"history.{quote_identifier(table)}",
        "columns": ", ".join(f"{name} = added.{name}" for name in names),
    }
    db.register("read_again", rows)
    db.execute(UPDATE_ROWS.format(**terms))
    db.unregister("read_again")


def _on(place: Place, query: str, **terms: str) -> str:
    table = f"history.{quote_identifier(place.table)}"
    return query.format(table=table, column=quote_identifier(place.name), **terms)
