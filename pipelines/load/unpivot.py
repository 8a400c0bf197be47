"""Moves what columns hold, one for each name, to rows of a table: a name and its value.

Here: objects with a column of single values for each name, by SQL. Not here: any other (`maps.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.load.names import Path
from pipelines.load.reread import has_extreme_day
from pipelines.load.schema import DIGITS, INTEGER_DIGITS, Kind, Place

NUMBERS: Final = {Kind.INTEGER, Kind.DECIMAL}
TIMES: Final = {Kind.DATE, Kind.TIME}
# Each name has a column. `_index` is the place of a name among those that a row has.
UNPIVOT: Final = """
INSERT INTO {table} BY NAME
WITH listed AS (
    SELECT
        history._connection, history.{key} AS _parent_key, {indexes}
        history._valid_from, history._valid_to,
        [{is_there}] AS is_there, {lists}
    FROM {rows} AS history
    WHERE history.rowid NOT IN (SELECT map_rows._number FROM map_rows)
)
SELECT
    listed.* EXCLUDE (is_there, {columns}),
    unnest(range(len(list_filter(is_there, lambda each: each)))) AS _index,
    unnest(list_where($names, is_there)) AS _name, {values}
FROM listed
"""


def unpivot(
    db: duckdb.DuckDBPyConnection,
    rows: Place,
    table: Place,
    value: Place,
    columns: Mapping[str, Place],
) -> None:
    """Insert the values of all rows into a table, but those of rows in `map_rows`.

    `value` is the place of the values in the table, `columns` are those of the rows by name.
    """
    names = sorted(columns)
    lists = {"value": [_cast(columns[name], value) for name in names]}
    if value.kind is Kind.TIME:
        lists["offset"] = [_offset(columns[name]) for name in names]
    there = [f"history.{quote_identifier(columns[name].name)} IS NOT NULL" for name in names]
    indexes = zip(rows.indexes, table.indexes[1:], strict=True)
    targets = zip(lists, [quote_identifier(name) for _, name, _ in value.columns()], strict=True)
    query = UNPIVOT.format(
        table=f"history.{quote_identifier(table.table)}",
        rows=f"history.{quote_identifier(rows.table)}",
        key=rows.key,
        indexes="".join(f"history.{mine} AS {theirs}, " for mine, theirs in indexes),
        is_there=", ".join(there),
        lists=", ".join(f"[{', '.join(each)}] AS {part}s" for part, each in lists.items()),
        columns=", ".join(f"{part}s" for part in lists),
        values=", ".join(f"unnest(list_where({part}s, is_there)) AS {to}" for part, to in targets),
    )
    db.execute(query, {"names": names})


def single_values(places: Mapping[Path, Place], path: Path) -> dict[str, Place]:
    """Return the places of the members of an object, if each has one column of single values."""
    inner = {at: each for at, each in places.items() if at != path}
    is_flat = all(len(at) == len(path) + 1 and each.is_scalar for at, each in inner.items())
    return {str(at[-1]): each for at, each in inner.items()} if is_flat else {}


def common_type(db: duckdb.DuckDBPyConnection, places: Sequence[Place]) -> Place | None:
    """Return a place whose type holds the values of all columns as they are; None: there is none.

    Number texts that were no numbers, such as identifiers, stay texts.
    """
    kinds = {each.kind for each in places}
    kind = Kind.DECIMAL if kinds == NUMBERS else Kind.TIME if kinds == TIMES else min(kinds)
    scale = max(each.scale for each in places)
    digits = max(each.digits for each in places)
    if Kind.INTEGER in kinds:
        digits = max(digits, INTEGER_DIGITS if kind is Kind.DECIMAL else 0)
    is_alike = len(kinds) == 1 or kinds in (NUMBERS, TIMES)
    if not is_alike or (kind is Kind.DECIMAL and scale + digits > DIGITS):
        return None
    if kinds == TIMES and any(
        has_extreme_day(db, each) for each in places if each.kind is Kind.DATE
    ):
        return None
    found = Place((), "", kind, scale=scale, digits=digits)
    shared = (each for each in places[0].candidates)
    found.candidates = tuple(
        kind for kind in shared if all(kind in each.candidates for each in places)
    )
    return found


def _cast(place: Place, value: Place) -> str:
    """Return the expression of a column with the type of the values."""
    column = f"history.{quote_identifier(place.name)}"
    (_, _, of_type), *_ = value.columns()
    if place.kind is Kind.DATE and value.kind is Kind.TIME:
        return f"timezone('UTC', CAST({column} AS TIMESTAMP))"
    return f"CAST({column} AS {of_type})"


def _offset(place: Place) -> str:
    """Return the expression of the offset of a time; a date has none."""
    has_offset = place.kind is Kind.TIME
    return f"history.{quote_identifier(f'{place.name}__offset')}" if has_offset else "NULL::VARCHAR"
