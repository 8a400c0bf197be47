"""Which column has which role: the fields of a mapping, looked up in `meta.columns`."""

import json
import re
from functools import cached_property
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.finance.mapping import Mapping

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


class _Column(NamedTuple):
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


class Column(_Column):
    """A column of `history`; `path` is the field that it holds, as a mapping names it.

    In statements, `value` is the column, `source` its current rows, and `row` one of them: record
    or line. `scale` and `digits` count the digits behind and before the decimal point. `steps` are
    the names from the record inwards, as JSON.
    """

    @cached_property
    def list_names(self) -> list[str]:
        """The names from the record to the list that holds the row; none of a record."""
        names: list[Any] = json.loads(self.steps)
        return names[: names.index(None)] if None in names else []

    @cached_property
    def names(self) -> list[str]:
        """The names from the row inwards."""
        names: list[Any] = json.loads(self.steps)
        return names[max((at for at, name in enumerate(names) if name is None), default=-1) + 1 :]

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
    return [re.sub("(?<=[^su])s$", "", each.lower()) for each in WORD.findall(name)]


def read_columns(db: duckdb.DuckDBPyConnection) -> list[Column]:
    """Return the columns of the three lists that hold single values, in their order."""
    return [Column(*row) for row in db.execute(COLUMNS).fetchall()]


def find_roles(
    db: duckdb.DuckDBPyConnection, mapping: Mapping
) -> tuple[dict[str, Column], dict[str, str]]:
    """Return the column of each role (`usage.amount`), and why other roles have none."""
    columns = {(each.stream, each.path): each for each in read_columns(db)}
    known, unknown = dict[str, Column](), dict[str, str]()
    for role, path in mapping.fields().items():
        side = role.partition(".")[0]
        column = columns.get((side, path))
        if column is None:
            is_read = any(stream == side for stream, _path in columns)
            lack = f"no record of {side} has a field {path}" if is_read else f"{side} has no rows"
            unknown[role] = f"{lack} ({role})"
        else:
            known[role] = column
    of_lines = [role for role in known if ".line_" in role]
    tables = [known[role].table for role in of_lines if known[role].row == "line"]
    for role in of_lines:
        if known[role].table not in tables[:1]:
            unknown[role] = f"field {known.pop(role).path} is not in the list of lines ({role})"
    return known, unknown
