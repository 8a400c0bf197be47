"""Which column has which role: the fields of a mapping, looked up in `meta.columns`."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import duckdb

from pipelines.finance.mapping import Mapping as RoleMapping

SIDES: Final = ("partners", "usage", "billing")
NUMBERS: Final = ("quantity", "price", "amount")
COLUMNS: Final = """
SELECT
    columns.stream, replace(substring(columns.path, 3), '[*]', '[]') AS path, columns.table_name,
    columns.type, if(columns.table_name = columns.stream, 'record', 'line') AS row,
    concat(row, '."', replace(columns.column_name, '"', '""'), '"') AS value,
    concat('current."', replace(columns.table_name, '"', '""'), '" AS ', row) AS source,
    columns.type SIMILAR TO '(BIGINT|DECIMAL).*' AS is_number,
    coalesce(TRY_CAST(regexp_extract(columns.type, ',(\\d+)', 1) AS INTEGER), 0) AS scale,
    columns.digits, columns.steps
FROM meta.columns AS columns
WHERE columns.part = 'value' AND columns.stream IN ('partners', 'usage', 'billing')
    AND columns.type NOT LIKE '%[]'
ORDER BY columns.position
"""
# The date in a text, which may be a month.
DAY: Final = "coalesce(TRY_CAST({value} AS DATE), TRY_CAST({value} || '-01' AS DATE))"

WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


@dataclass(frozen=True)
class FieldColumn:
    """A column of `history`; `path` is the field that it holds, as a mapping names it.

    In statements, `value` is the column, `source` its current rows, and `row` one of them: record
    or line. `scale` and `digits` count the digits behind and before the decimal point. `steps` are
    the names from the record inwards, as JSON; null stands for a list.
    """

    stream: str
    path: str
    table: str
    type: str
    row: str
    value: str
    source: str
    is_number: bool
    scale: int
    digits: int
    steps: str

    @cached_property
    def list_names(self) -> list[str]:
        """The names from the record to the list that holds the row; none of a record."""
        names: list[Any] = json.loads(self.steps)
        return names[: names.index(None)] if None in names else []

    @cached_property
    def names(self) -> list[str]:
        """The names from the row inwards."""
        names: list[Any] = json.loads(self.steps)
        while None in names:
            names = names[names.index(None) + 1 :]
        return names

    @property
    def is_time(self) -> bool:
        """Whether it holds moments."""
        return self.type.startswith("TIMESTAMP")

    @property
    def offset(self) -> str:
        """Of moments: the column with the offset, which is NULL where a date was sent."""
        return f'{self.value[:-1]}__offset"'


def words(name: str) -> list[str]:
    """Return the words of a name, small and without the s of a plural: unitPrices: unit, price."""
    return [re.sub("(?<=[^su])s$", "", word.lower()) for word in WORD.findall(name)]


def read_columns(db: duckdb.DuckDBPyConnection) -> list[FieldColumn]:
    """Return the columns of the three lists that hold single values, in their order."""
    return [FieldColumn(*row) for row in db.execute(COLUMNS).fetchall()]


def find_roles(
    db: duckdb.DuckDBPyConnection, mapping: RoleMapping
) -> tuple[dict[str, FieldColumn], dict[str, str]]:
    """Return the column of each role (`usage.amount`), and why other roles have none."""
    columns = {(column.stream, column.path): column for column in read_columns(db)}
    streams = {column.stream for column in columns.values()}
    known: dict[str, FieldColumn] = {}
    unknown: dict[str, str] = {}
    for role, path in mapping.fields().items():
        side = role.partition(".")[0]
        column = columns.get((side, path))
        if column is not None:
            known[role] = column
        elif side in streams:
            unknown[role] = f"no record of {side} has a field {path} ({role})"
        else:
            unknown[role] = f"{side} has no rows ({role})"
    for role in [role for role, column in known.items() if column.row == "line"]:
        if ".line_" not in role:
            path = known.pop(role).path
            unknown[role] = f"field {path} is in a list: a record may have several ({role})"
    for role in _outside_the_lines(known):
        path = known.pop(role).path
        unknown[role] = f"field {path} is not in the list of lines ({role})"
    return known, unknown


def _outside_the_lines(known: Mapping[str, FieldColumn]) -> list[str]:
    """Return the roles of lines whose column is not in the list that holds the lines.

    That is the first list which a role of lines names.
    """
    of_lines = {role: column for role, column in known.items() if ".line_" in role}
    lists = [column.table for column in of_lines.values() if column.row == "line"]
    return [role for role, column in of_lines.items() if column.table not in lists[:1]]
