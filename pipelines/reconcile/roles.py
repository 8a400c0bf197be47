"""Which column has which role: the fields of a mapping, looked up in `meta.columns`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import duckdb

from pipelines.config.mapping import Mapping
from pipelines.core.text import quote_identifier

SIDES: Final = ("partners", "usage", "billing")
NUMBERS: Final = ("quantity", "price", "amount")
COLUMNS: Final = """
SELECT
    columns.stream, replace(substring(columns.path, 3), '[*]', '[]') AS path, columns.table_name,
    columns.column_name, columns.type
FROM meta.columns AS columns
WHERE columns.part = 'value' AND columns.stream IN ('partners', 'usage', 'billing')
    AND columns.type NOT LIKE '%[]'
ORDER BY columns.position
"""
# The date in a text, which may be a month.
DAY: Final = "coalesce(TRY_CAST({value} AS DATE), TRY_CAST({value} || '-01' AS DATE))"


class Column(NamedTuple):
    """A column of `history` with the field that it holds, as a mapping names it."""

    stream: str
    path: str
    table: str
    name: str
    type: str

    @property
    def row(self) -> str:
        """What statements call a row of its table."""
        return "record" if self.table == self.stream else "line"

    @property
    def value(self) -> str:
        """The column in a statement."""
        return f"{self.row}.{quote_identifier(self.name)}"

    @property
    def source(self) -> str:
        """Its current rows in a statement."""
        return f"current.{quote_identifier(self.table)} AS {self.row}"

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.type.startswith(("DECIMAL", "BIGINT"))

    @property
    def scale(self) -> int:
        """Digits behind the decimal point."""
        return scale_of(self.type)


def scale_of(decimal: object) -> int:
    """Return the digits behind the point that a type of DuckDB holds."""
    found = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", str(decimal))
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Roles:
    """The column of each role (`usage.amount`); `unknown` says why each other role has none."""

    columns: dict[str, Column]
    unknown: dict[str, str]

    def missing(self, needs: Iterable[str]) -> str:
        """Return why roles are unknown; empty if all are known."""
        reasons = (
            self.unknown.get(role, f"{role} is not mapped")
            for role in needs
            if role not in self.columns
        )
        return "; ".join(dict.fromkeys(reasons))

    @property
    def lines(self) -> str:
        """The table of lines of bills; empty without one."""
        return next((each.table for role, each in self.columns.items() if ".line_" in role), "")

    def decimal(self, measure: str) -> str:
        """Return the type of a measure (amount) on both sides.

        It is one for both: where two types meet, DuckDB rounds.
        """
        scales = [each.scale for role, each in self.columns.items() if role.endswith(measure)]
        return f"DECIMAL(38,{max(scales, default=0)})"


def read_columns(db: duckdb.DuckDBPyConnection) -> list[Column]:
    """Return the columns of the three lists that hold single values, in their order."""
    return [Column(*row) for row in db.execute(COLUMNS).fetchall()]


def find_roles(db: duckdb.DuckDBPyConnection, mapping: Mapping) -> Roles:
    """Return the columns of the roles of a mapping."""
    columns = {(each.stream, each.path): each for each in read_columns(db)}
    known, unknown = dict[str, Column](), dict[str, str]()
    for role, path in mapping.fields().items():
        side, _, name = role.partition(".")
        column = columns.get((side, path))
        if column is None:
            is_read = any(stream == side for stream, _path in columns)
            lack = f"no record of {side} has a field {path}" if is_read else f"{side} has no rows"
            unknown[role] = f"{lack} ({role})"
        elif name.endswith(NUMBERS) and not column.is_number:
            unknown[role] = f"field {path} of {side} holds text, not numbers ({role})"
        else:
            known[role] = column
    of_lines = [role for role in known if ".line_" in role]
    tables = [known[role].table for role in of_lines if known[role].table != "billing"]
    for role in of_lines:
        if known[role].table not in tables[:1]:
            unknown[role] = f"field {known.pop(role).path} is not in the list of lines ({role})"
    return Roles(known, unknown)
