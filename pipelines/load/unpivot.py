"""Moves what columns hold, one for each name, to rows of a table: a name and its value.

Here: objects whose names have columns of single values, by SQL. Not here: lists, and what is in
`_extra` (`maps.py`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.load.names import Path
from pipelines.load.reread import has_extreme_day
from pipelines.load.schema import DIGITS, INTEGER_DIGITS, Kind, Place

NUMBERS: Final = {Kind.INTEGER, Kind.DECIMAL}
TIMES: Final = {Kind.DATE, Kind.TIME}
# `_index` is the place of a name among those that a row has.
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
    listed.* EXCLUDE (is_there, {names}),
    unnest(range(len(list_filter(is_there, lambda each: each)))) AS _index,
    unnest(list_where($names, is_there)) AS _name, {values}
FROM listed
"""
Columns: TypeAlias = dict[str, dict[Path, Place]]
"""The columns of an object, by the name of a member and the path in its value."""


def flat_columns(places: Mapping[Path, Place], path: Path) -> Columns:
    """Return the columns of an object, unless a list or a map is in it."""
    found: Columns = defaultdict(dict)
    for at, place in places.items():
        inner = at[len(path) :]
        if inner and (None in inner or place.kind in {Kind.LIST, Kind.MAP}):
            return {}
        if place.is_scalar:
            found[str(inner[0])][inner[1:]] = place
    return found


@dataclass(frozen=True)
class Unpivot:
    """The statement that moves values from columns of `rows` to `table`.

    `values` are the places of the values in the table, by their path in a value.
    """

    rows: Place
    table: Place
    columns: Columns
    values: Mapping[Path, Place]

    def run(self, db: duckdb.DuckDBPyConnection) -> None:
        """Move the values of all rows but those of `map_rows`, which are moved already."""
        names = sorted(self.columns)
        lists = [each for at in self.values for each in self._lists(at, names)]
        indexes = zip(self.rows.indexes, self.table.indexes[1:], strict=True)
        query = UNPIVOT.format(
            table=f"history.{quote_identifier(self.table.table)}",
            rows=f"history.{quote_identifier(self.rows.table)}",
            key=self.rows.key,
            indexes="".join(f"history.{mine} AS {theirs}, " for mine, theirs in indexes),
            is_there=", ".join(self._is_there(name) for name in names),
            lists=", ".join(f"[{each}] AS list_{at}" for at, (each, _) in enumerate(lists)),
            names=", ".join(f"list_{at}" for at in range(len(lists))),
            values=", ".join(
                f"unnest(list_where(list_{at}, is_there)) AS {quote_identifier(column)}"
                for at, (_, column) in enumerate(lists)
            ),
        )
        db.execute(query, {"names": names})

    def _is_there(self, name: str) -> str:
        """Return the expression that says whether a row has a name."""
        columns = [quote_identifier(each.name) for each in self.columns[name].values()]
        return f"({' OR '.join(f'history.{each} IS NOT NULL' for each in columns)})"

    def _lists(self, at: Path, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield what each name has at a path of its value, as SQL, and the new column for it."""
        value = self.values[at]
        places = [self.columns[name].get(at) for name in names]
        for part, column, of_type in value.columns():
            read = _offset if part == "offset" else partial(_cast, value)
            found = ["NULL" if each is None else read(each) for each in places]
            yield ", ".join(f"CAST({each} AS {of_type})" for each in found), column


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


def _cast(value: Place, column: Place) -> str:
    """Return the expression of a column, of a type that can be cast to that of the values."""
    found = f"history.{quote_identifier(column.name)}"
    if column.kind is Kind.DATE and value.kind is Kind.TIME:
        return f"timezone('UTC', CAST({found} AS TIMESTAMP))"
    return found


def _offset(column: Place) -> str:
    """Return the expression of the offset of a time; a date has none."""
    name = quote_identifier(f"{column.name}__offset")
    return f"history.{name}" if column.kind is Kind.TIME else "NULL"
