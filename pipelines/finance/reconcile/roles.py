"""Which column has which role: the fields of a mapping, looked up in `meta.columns`.

A role is named with its side: `usage.amount`, `billing.line_amount`.

Here: the columns, and which of the roles decide on what is compared. Not here: how the values of a
column are read (readings).
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
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
# With these, lines of bills are compared with the usage that they name; else, whole months are.
BY_USAGE: Final = ("usage.id", "billing.line_usage")
QUANTITIES: Final = ("usage.quantity", "billing.line_quantity")
# Names of roles without which a figure is wrong.
NEEDED: Final = (
    "id", "partner", "period", "amount", "currency", "quantity", "status", "kind", "line_usage",
    "line_amount", "line_quantity", "line_currency",
)  # fmt: skip
NEEDED_OF_LINES: Final = ("billing.line_usage", "billing.line_amount", "billing.line_currency")
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


def side_of(role: str) -> str:
    """Return the side of a role: `billing` of `billing.line_amount`."""
    return role.partition(".")[0]


def name_of(role: str) -> str:
    """Return the name that a role has on its side: `line_amount` of `billing.line_amount`."""
    return role.partition(".")[2]


def is_of_lines(role: str) -> bool:
    """Return whether a role is one of lines of bills, not of records."""
    return name_of(role).startswith("line_")


def is_by_usage(roles: Iterable[str]) -> bool:
    """Return whether lines of bills are compared with the usage that they name, not whole months.

    `roles` are those that have a column.
    """
    return set(BY_USAGE).issubset(roles)


def needed_roles(roles: Collection[str]) -> set[str]:
    """Return the roles without which a figure is wrong: a record that lacks one is unreadable.

    `roles` are those that have a column.
    """
    needed = {role for role in roles if name_of(role) in NEEDED}
    # A bill without an identifier is named by its key.
    needed.discard("billing.id")
    if not is_by_usage(roles):
        needed.difference_update(NEEDED_OF_LINES)
    # A quantity is compared only with one of the other side.
    if not needed.issuperset(QUANTITIES):
        needed.difference_update(QUANTITIES)
    return needed


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
    fields = mapping.fields()
    lines = _table_of_lines(fields, columns)
    known: dict[str, FieldColumn] = {}
    unknown: dict[str, str] = {}
    for role, path in fields.items():
        side = side_of(role)
        column = columns.get((side, path))
        if column is None and side not in streams:
            unknown[role] = f"{side} has no rows ({role})"
        elif column is None:
            unknown[role] = f"no record of {side} has a field {path} ({role})"
        elif is_of_lines(role) and column.table != lines:
            unknown[role] = f"field {path} is not in the list of lines ({role})"
        elif column.row == "line" and not is_of_lines(role):
            unknown[role] = f"field {path} is in a list: a record may have several ({role})"
        else:
            known[role] = column
    return known, unknown


def _table_of_lines(
    fields: Mapping[str, str], columns: Mapping[tuple[str, str], FieldColumn]
) -> str | None:
    """Return the table of the first list that a role of lines names; None if none names one."""
    for role, path in fields.items():
        column = columns.get((side_of(role), path))
        if is_of_lines(role) and column is not None and column.row == "line":
            return column.table
    return None
