"""The data columns of a stream's tables: each with its type and the JSON path that it comes from.

Listed from a shape and the names that its paths were given; two lists compared are what changed.
Not here: who is told of it (evolution, dictionary).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pipelines.warehouse.misfits import ITEM, Path
from pipelines.warehouse.schema import Shape
from pipelines.warehouse.tables import REST, Flattener, Names

Given = Mapping[str, Mapping[str, str]]
Where = tuple[str, str]  # table and column
BESIDE = {"__text", REST}  # what they hold has no column of its own
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Source:
    """Where a column comes from: its JSON path, and which part of what is there it holds."""

    path: str
    ending: str

    @property
    def words(self) -> str:
        """What the column is, for those who read its comment."""
        match self.ending:
            case "__offset":
                return f"the UTC offset of {self.path} as it was sent"
            case "__count":
                return f"how many items {self.path} has, each a row of a table of its own"
            case "__text":
                return f"{self.path} where its value does not fit the column, whole"
            case "_rest":
                return f"fields of {self.path} beyond the limit of new columns, as JSON"
        return f"{self.path} of the record"


def json_path(path: Path, root: str = "$") -> str:
    """Return where something is in a record: `$.lines[*].unitPrice`."""
    steps = [
        step
        if step == ITEM
        else f".{step}"
        if _PLAIN.fullmatch(step)
        else f"[{json.dumps(step, ensure_ascii=False)}]"
        for step in path
    ]
    return root + "".join(steps)


def sources(stream: str, given: Given) -> dict[Where, Source]:
    """Return where every column that was ever given comes from, by table and column."""
    roots = {stream: "$"}
    for leaf, table in given.get("", {}).items():  # parents were named before their children
        parent, *path = json.loads(leaf)
        roots[table] = json_path((*path, ITEM), roots[parent])
    found = {(table, REST): Source(root, REST) for table, root in roots.items()}
    for table, root in roots.items():
        for leaf, column in given.get(table, {}).items():
            *path, ending = json.loads(leaf)
            found[table, column] = Source(json_path(tuple(path), root), ending)
    return found


def types(shape: Shape, stream: str, key: str | None, given: Given) -> dict[Where, str]:
    """Return the type of every data column of a shape's tables, as DuckDB calls it."""
    names = Names({table: dict(each) for table, each in given.items()})
    tables = Flattener(stream, shape, key, names).empty()
    known = sources(stream, names.given)
    inherited = set(_inherited(stream, key, given))
    return {
        (table, field.name): _sql(field.type)
        for table, empty in tables.items()
        for field in empty.schema
        if (table, field.name) in known and (table == stream or field.name not in inherited)
    }


def _inherited(stream: str, key: str | None, given: Given) -> Iterator[str]:
    """Yield the column of the key, which every child table has too."""
    if key is not None and (own := given.get(stream, {}).get(json.dumps([key, ""]))):
        yield own


def _sql(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ"
    return {pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN"}.get(kind, "VARCHAR")
