"""The columns behind the roles of a mapping, as the tables are now.

A role that is not mapped, and one whose path no column has, is unknown; its reason is said wherever
a rule is not evaluated for it. What tells records apart needs no mapping: a stream's own key, and
where another list has a field of that name. Not here: what is done with the columns (matching).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import duckdb

from pipelines.settings.mapping import Mapping as Given
from pipelines.warehouse import registry
from pipelines.warehouse.columns import json_path, sources
from pipelines.warehouse.database import exists
from pipelines.warehouse.misfits import ITEM

COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE schema_name = 'current' AND (table_name = ? OR starts_with(table_name, ?))
ORDER BY table_name, column_index
"""
SIDES = ("partners", "usage", "billing")
SETTINGS = {"stream"}
LINE = "line_"  # roles of a bill's lines begin with it
TEXT = "VARCHAR"
NUMBERS = ("quantity", "price", "amount")
INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}  # their digits


@dataclass(frozen=True)
class Column:
    """A column of `current`, with DuckDB's name of its type and its comment."""

    table: str
    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True)
class Roles:
    """What each role (`usage.amount`) is; `unknown` says of the others why they are not there.

    `data` are the columns of each side's own table that hold what the service said.
    """

    columns: Mapping[str, Column]
    unknown: Mapping[str, str]
    streams: Mapping[str, str]
    data: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def lacking(self, needs: tuple[str, ...]) -> str:
        """Say why what needs these roles cannot be evaluated; empty where it can."""
        unknown = (self.unknown[role] for role in needs if role not in self.columns)
        return "; ".join(dict.fromkeys(unknown))

    def has(self, *roles: str) -> bool:
        """Whether all of them are known."""
        return all(role in self.columns for role in roles)

    def kind(self, role: str) -> str:
        """Return the DECIMAL that holds a role's numbers and those that they are compared with.

        One for both sides: where two kinds meet, DuckDB keeps 38 digits and rounds the rest away.
        """
        measure = next(each for each in NUMBERS if role.endswith(each))
        of = [each for name, each in self.columns.items() if name.endswith(measure)]
        digits, scales = zip(*[_digits(each.type) for each in of] or [(18, 0)], strict=True)
        return f"DECIMAL({min(38, max(digits) + max(scales))}, {max(scales)})"

    @cached_property
    def lines(self) -> str | None:
        """The child table of a bill's lines; None where no role of them is known."""
        tables = {
            column.table
            for role, column in self.columns.items()
            if role.startswith(f"billing.{LINE}")
        }
        return min(tables, default=None)


def _digits(kind: str) -> tuple[int, int]:
    """Return how many digits a column's numbers have before and behind the point."""
    if found := re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", kind):
        return int(found[1]) - int(found[2]), int(found[2])
    return INTEGERS.get(kind, 38), 0


def find(
    database: duckdb.DuckDBPyConnection, given: Given, keys: Mapping[str, str | None]
) -> Roles:
    """Return the columns of all roles; `keys` are the fields that tell each stream's records apart.

    The stream of a role that lands nothing yet has no column, and that is said.
    """
    known, unknown = dict[str, Column](), dict[str, str]()
    streams = {side: getattr(given, side).stream for side in SIDES}
    there = {side: dict(columns(database, stream)) for side, stream in streams.items()}
    for side in SIDES:
        table = getattr(given, side)
        for name in type(table).model_fields.keys() - SETTINGS:
            role, path = f"{side}.{name}", getattr(table, name)
            wanted = path or _own(role, streams, given, keys)
            column = there[side].get(_json(wanted)) if wanted else None
            if column is not None and name.endswith(NUMBERS) and column.type == TEXT:
                unknown[role] = f"{wanted} of {streams[side]} holds texts, not numbers ({role})"
            elif column is not None:
                known[role] = column
            elif not there[side]:
                unknown[role] = f"{streams[side]} has no rows"
            elif path:
                unknown[role] = f"no column of {streams[side]} comes from {path} ({role})"
            else:
                unknown[role] = f"{role} is not mapped"
    data = {
        side: [each.name for each in found.values() if each.table == streams[side]]
        for side, found in there.items()
    }
    return Roles(known, unknown, streams, data)


def _own(
    role: str, streams: Mapping[str, str], given: Given, keys: Mapping[str, str | None]
) -> str | None:
    """Return the field that has a role without a mapping: the key of its list, or of another."""
    side, _, name = role.partition(".")
    if name == "id":
        return keys.get(streams[side])
    if name == "partner":
        return given.partners.id or keys.get(streams["partners"])
    return None


def _json(path: str) -> str:
    """Return a mapping's path as the columns' own: lines[].usageId is $.lines[*].usageId."""
    steps = list[str]()
    for part in path.split("."):
        steps += [part.removesuffix("[]"), *([ITEM] if part.endswith("[]") else [])]
    return json_path(tuple(steps))


def columns(database: duckdb.DuckDBPyConnection, stream: str) -> Iterator[tuple[str, Column]]:
    """Yield the data columns of a stream's tables by their JSON path, as they are now."""
    known = registry.registered(database, stream)
    if known is None or not exists(database, "current", stream):
        return
    given = sources(stream, known.names)
    for table, name, kind, comment in database.execute(COLUMNS, [stream, f"{stream}__"]).fetchall():
        source = given.get((table, name))
        if source is not None and not source.ending:
            yield source.path, Column(table, name, kind, comment)
