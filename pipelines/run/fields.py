"""The fields of a stream in the published tables: what could have a role in the mapping.

Here: each with its path as the service sends it, its column, its type and what the interface
description says of it. Not here: which role it has (proposing), what the rows say (measures).
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import duckdb

from pipelines.warehouse import roles
from pipelines.warehouse.database import exists, quoted

ITEM = "[]"
PLAIN = re.compile(r"[^.\[\]]+(\[\])?(\.[^.\[\]]+(\[\])?)*")  # what mapping.toml can name
QUOTED = re.compile(r'\[("(?:[^"\\]|\\.)*")\]')
WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
WHOLE = {"BIGINT", "INTEGER", "HUGEINT"}


@dataclass(frozen=True)
class Field:
    """A field of a stream: its path in the mapping's form, and the column that holds it."""

    stream: str
    table: str
    column: str
    kind: str
    path: str
    text: str = ""

    @property
    def inner(self) -> bool:
        """Whether it is of the items of an array, in a table of their own."""
        return ITEM in self.path

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name, small and singular; of an item's field without the array's."""
        return frozenset(words(self.path.rpartition(f"{ITEM}.")[2]))

    @property
    def numeric(self) -> bool:
        """Whether it is a number, a decimal sent as text included."""
        return self.kind in WHOLE or self.kind.startswith("DECIMAL")

    @property
    def whole(self) -> bool:
        """Whether it is a whole number in every row."""
        return self.kind in WHOLE or self.kind.endswith(",0)")

    @property
    def moment(self) -> bool:
        """Whether it is a time in every row."""
        return self.kind.startswith("TIMESTAMP")

    @property
    def textual(self) -> bool:
        """Whether it is text."""
        return self.kind == "VARCHAR"

    @property
    def sql(self) -> str:
        """The column as SQL names it."""
        return quoted(self.column)


@dataclass(frozen=True)
class Fields:
    """The fields of one stream; `key` is the path of what tells its records apart, if known."""

    stream: str
    found: tuple[Field, ...]
    key: str | None = None

    @property
    def outer(self) -> list[Field]:
        """Those of the record itself."""
        return [each for each in self.found if not each.inner]

    @property
    def arrays(self) -> list[list[Field]]:
        """Those of the items of each array, an array at a time; arrays in arrays are left out."""
        tables = dict.fromkeys(each.table for each in self.found if each.path.count(ITEM) == 1)
        return [[each for each in self.found if each.table == table] for table in tables]

    def at(self, path: str) -> Field | None:
        """Return the field of a path."""
        return next((each for each in self.found if each.path == path), None)


def words(name: str) -> Iterable[str]:
    """Yield the words of a name, small and without the s of a plural: unitPrice -> unit price."""
    for word in WORDS.findall(name):
        small = word.lower()
        yield small[:-1] if re.fullmatch(r".+[^s]s", small) else small


def mapped_path(path: str) -> str:
    """Return a JSON path as the mapping has it: `$.lines[*]["a b"]` -> `lines[].a b`."""
    plain = QUOTED.sub(lambda each: f".{json.loads(each[1])}", path)
    return plain.removeprefix("$").removeprefix(".").replace("[*]", ITEM)


def read(database: duckdb.DuckDBPyConnection, stream: str) -> Fields:
    """Return the fields of a stream as it is published; none where it was never read."""
    found = (
        Field(stream, each.table, each.name, each.type, path, _said(each.comment))
        for source, each in roles.columns(database, stream)
        if PLAIN.fullmatch(path := mapped_path(source))
    )
    return Fields(stream, tuple(found), _key(database, stream))


def _said(text: str | None) -> str:
    """Return what the description says; a comment of ours, on where it comes from, is nothing."""
    return "" if text is None or text.startswith("$") else text


def _key(database: duckdb.DuckDBPyConnection, stream: str) -> str | None:
    """Return by which field the newest reading tells records apart, if by one."""
    if not exists(database, "meta", "proofs"):
        return None
    rows = database.execute(
        "SELECT DISTINCT key FROM meta.proofs WHERE stream = ? AND in_force", [stream]
    ).fetchall()
    return rows[0][0] if len(rows) == 1 else None
