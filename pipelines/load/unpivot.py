"""Moves what columns hold, one for each name, to rows of a table: a name and its value.

Here: objects whose names have columns of single values, by SQL. Not here: lists, and what is in
`_extra` (`maps.py`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.load.paths import FieldPath
from pipelines.load.place import DIGITS, INTEGER_DIGITS, NUMBERS, Kind, Place
from pipelines.load.whole_column import has_extreme_day

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
MemberColumns: TypeAlias = dict[str, dict[FieldPath, Place]]
"""The columns of an object, by the name of a member and the path in its value."""


class _NewColumn(NamedTuple):
    """A column of the new table. `items` is SQL: its value for each name that a row may have."""

    name: str
    items: str


def flat_columns(places: Mapping[FieldPath, Place], path: FieldPath) -> MemberColumns:
    """Return the columns of an object, unless a list or a map is in it."""
    columns: MemberColumns = defaultdict(dict)
    for place_path, place in places.items():
        inner = place_path[len(path) :]
        if inner and (None in inner or place.kind in {Kind.LIST, Kind.MAP}):
            return {}
        if place.is_scalar:
            columns[str(inner[0])][inner[1:]] = place
    return columns


@dataclass(frozen=True)
class Unpivot:
    """The statement that moves values from columns of `rows` to `table`.

    `values` are the places of the values in the table, by their path in a value.
    """

    rows: Place
    table: Place
    columns: MemberColumns
    values: Mapping[FieldPath, Place]

    def run(self, db: duckdb.DuckDBPyConnection) -> None:
        """Move the values of all rows but those of `map_rows`, which are moved already."""
        names = sorted(self.columns)
        indexes = []
        for index, new_index in zip(self.rows.indexes, self.table.indexes[1:], strict=True):
            indexes.append(f"history.{index} AS {new_index}, ")
        lists = list[str]()
        list_names = list[str]()
        values = list[str]()
        for path, place in self.values.items():
            for column in self._new_columns(path, place, names):
                list_name = f"list_{len(lists)}"
                lists.append(f"[{column.items}] AS {list_name}")
                list_names.append(list_name)
                unnested = f"unnest(list_where({list_name}, is_there))"
                values.append(f"{unnested} AS {quote_identifier(column.name)}")
        query = UNPIVOT.format(
            table=f"history.{quote_identifier(self.table.table)}",
            rows=f"history.{quote_identifier(self.rows.table)}",
            key=self.rows.key,
            indexes="".join(indexes),
            is_there=", ".join(map(self._is_there, names)),
            lists=", ".join(lists),
            names=", ".join(list_names),
            values=", ".join(values),
        )
        db.execute(query, {"names": names})

    def _is_there(self, name: str) -> str:
        """Return the expression that says whether a row has a name."""
        columns = [quote_identifier(place.name) for place in self.columns[name].values()]
        return f"({' OR '.join(f'history.{column} IS NOT NULL' for column in columns)})"

    def _new_columns(
        self, path: FieldPath, value: Place, names: Sequence[str]
    ) -> Iterator[_NewColumn]:
        """Yield the new columns for what each name has at a path of its value."""
        for part, new_name, column_type in value.columns():
            items = []
            for name in names:
                earlier = self.columns[name].get(path)
                if earlier is None:
                    expression = "NULL"
                elif part == "offset":
                    expression = _offset(earlier)
                else:
                    expression = _castable(earlier, value)
                items.append(f"CAST({expression} AS {column_type})")
            yield _NewColumn(new_name, ", ".join(items))


def common_type(db: duckdb.DuckDBPyConnection, places: Sequence[Place]) -> Place | None:
    """Return a place whose type holds the values of all columns as they are; None: there is none.

    Number texts that were no numbers, such as identifiers, stay texts.
    """
    kind = _common_kind(db, places)
    if kind is None:
        return None
    scale = max(place.scale for place in places)
    digits = max(place.digits for place in places)
    if kind is Kind.DECIMAL:
        if any(place.kind is Kind.INTEGER for place in places):
            digits = max(digits, INTEGER_DIGITS)
        if scale + digits > DIGITS:
            return None
    candidates = _common_candidates(places)
    return Place((), "", kind, scale=scale, digits=digits, candidates=candidates)


def _common_candidates(places: Sequence[Place]) -> tuple[Kind, ...]:
    """Return the candidates that all columns have, in their order."""
    shared = set(places[0].candidates).intersection(*(place.candidates for place in places))
    return tuple(kind for kind in places[0].candidates if kind in shared)


def _common_kind(db: duckdb.DuckDBPyConnection, places: Sequence[Place]) -> Kind | None:
    """Return the kind that takes the values of all columns as they are."""
    kinds = {place.kind for place in places}
    if len(kinds) == 1:
        return places[0].kind
    if kinds == NUMBERS:
        return Kind.DECIMAL
    if kinds == TIMES:
        for place in places:
            if place.kind is Kind.DATE and has_extreme_day(db, place):
                return None
        return Kind.TIME
    return None


def _castable(column: Place, value: Place) -> str:
    """Return the expression of a column, of a type that can be cast to that of the values."""
    expression = f"history.{quote_identifier(column.name)}"
    if column.kind is Kind.DATE and value.kind is Kind.TIME:
        # A cast from DATE to TIMESTAMPTZ would take midnight in the session's time zone.
        return f"timezone('UTC', CAST({expression} AS TIMESTAMP))"
    return expression


def _offset(column: Place) -> str:
    """Return the expression of the offset of a time; a date has none."""
    if column.kind is not Kind.TIME:
        return "NULL"
    return f"history.{quote_identifier(f'{column.name}__offset')}"
