"""The tables and columns of a stream: names, types and where they come from (meta.columns)."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import starmap
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from pipelines.load.schema import DIGITS, Kind, Node, Path, Schema
from pipelines.load.target import Target

LONGEST_NAME = 63
HASH = 7  # "_" and six hexadecimal digits, behind a name that is long or taken
PARTS = ("", "__offset", "__count")  # endings of the columns that one place may have

CREATE_COLUMNS = """
CREATE TABLE IF NOT EXISTS meta.columns (
    stream VARCHAR,
    table_name VARCHAR,
    column_name VARCHAR,
    part VARCHAR,
    type VARCHAR,
    path VARCHAR,
    steps VARCHAR,
    kind VARCHAR,
    scale INTEGER,
    digits INTEGER,
    first_scan_id VARCHAR,
    position INTEGER
)
"""
SELECT_COLUMNS = """
SELECT columns.* EXCLUDE (stream, position)
FROM meta.columns AS columns
WHERE columns.stream = $stream
ORDER BY columns.position
"""
DELETE_COLUMNS = "DELETE FROM meta.columns WHERE columns.stream = $stream"
INSERT_COLUMNS = """
INSERT INTO meta.columns BY NAME
SELECT added.*, $stream AS stream
FROM load_columns AS added
"""
Types: TypeAlias = dict[tuple[str, str], str]
"""Types of columns of data, by table and name."""


class Column(NamedTuple):
    """One column of data, as in meta.columns.

    `part`: value, offset (of a time), count (of a list), or none: a place without a column yet.
    """

    table_name: str
    column_name: str | None
    part: str
    type: str
    path: str
    steps: str
    kind: str
    scale: int
    digits: int
    first_scan_id: str


@dataclass(frozen=True)
class Table:
    """One table of a stream. `depth` counts the lists around its rows: 0 for the stream's own."""

    name: str
    path: Path = ()
    depth: int = 0
    columns: list[Column] = field(default_factory=list)

    @property
    def index_names(self) -> tuple[str, ...]:
        """Positions of a row in its list and of the rows around it, from the inside out."""
        outer = ("_parent_index", *(f"_parent_index_{depth}" for depth in range(2, self.depth)))
        return ("_index", *outer)[: self.depth]

    @property
    def key(self) -> str:
        """The column with the key of the record."""
        return "_parent_key" if self.depth else "_key"

    @property
    def data(self) -> dict[str, str]:
        """Names and types of the columns of data."""
        return {each.column_name: each.type for each in self.columns if each.column_name}


def list_tables(root: Node, stream: str) -> list[Table]:
    """Return the tables of a stream, the stream's own first. Every place must have a name."""
    return list(_tables(root, Table(stream)))


def _tables(row: Node, table: Table) -> Iterator[Table]:
    yield table
    for path, node in leaves(row, table.path):
        table.columns.extend(_columns(table.name, node, path))
        if node.item is not None and node.has_rows:
            yield from _tables(node.item, Table(node.table, (*path, None), table.depth + 1))


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield what is below a row and is not an object."""
    for name, each in node.fields.items():
        if each.kind is Kind.OBJECT:
            yield from leaves(each, (*path, name))
        else:
            yield (*path, name), each


def _columns(table: str, node: Node, path: Path) -> Iterator[Column]:
    def column(part: str, kind: str, place: Node = node, steps: Path = path) -> Column:
        name = f"{node.name}__{part}" if part in {"offset", "count"} else node.name or None
        about = (json_path(steps), json.dumps(steps), place.kind.value, place.scale, place.digits)
        return Column(table, name, part, kind, *about, node.first_scan)

    if node.kind is Kind.NULL:
        yield column("none", "")
    elif node.kind is Kind.LIST:
        yield column("count", "BIGINT")
        if node.item is not None and node.item.kind not in {Kind.OBJECT, Kind.NULL}:
            yield column("value", f"{sql_type(node.item)}[]", node.item, (*path, None))
    else:
        yield column("value", sql_type(node))
        if node.kind is Kind.TIME:
            yield column("offset", "VARCHAR")


def sql_type(node: Node) -> str:
    """Return the type of a scalar's column."""
    return {
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INTEGER: "BIGINT",
        Kind.DECIMAL: f"DECIMAL({DIGITS},{node.scale})",
        Kind.DECIMAL_TEXT: f"DECIMAL({DIGITS},{node.scale})",
        Kind.DATE: "DATE",
        Kind.TIME: "TIMESTAMP WITH TIME ZONE",
    }.get(node.kind, "VARCHAR")


def name_columns(root: Node, stream: str, scan_id: str) -> None:
    """Give a name to every place that has none; a name is never given to another place."""
    tables = {stream, *(node.table for _, node in _all_leaves(root) if node.table)}
    _name_row(root, stream, tables, scan_id)


def _all_leaves(row: Node) -> Iterator[tuple[Path, Node]]:
    for path, node in leaves(row):
        yield path, node
        if node.item is not None and node.has_rows:
            yield from _all_leaves(node.item)


def _name_row(row: Node, table: str, tables: set[str], scan_id: str) -> None:
    taken = {node.name + part for _, node in leaves(row) if node.name for part in PARTS}
    for path, node in leaves(row):
        plain = "__".join(snake(str(step)) for step in path)
        if not node.name and node.kind is not Kind.NULL:
            node.name, node.first_scan = _free_name(plain, path, taken), scan_id
            taken |= {node.name + part for part in PARTS}
        if node.item is not None and node.has_rows:
            if not node.table:
                node.table = _free_name(f"{table}__{plain}", path, tables)
                tables.add(node.table)
            _name_row(node.item, node.table, tables, scan_id)


def snake(name: str) -> str:
    """Return a member's name as part of a column's: `unitPrice` becomes `unit_price`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W", "_", words).lower().strip("_") or "unnamed"


def _free_name(plain: str, path: Path, taken: set[str]) -> str:
    """Return a name that is short enough and not taken, also not with an ending."""
    name, seed = plain, json.dumps(path)
    while len(name) + len(PARTS[1]) > LONGEST_NAME or any(name + part in taken for part in PARTS):
        seed = sha256(seed.encode()).hexdigest()
        name = f"{plain[: LONGEST_NAME - len(PARTS[1]) - HASH]}_{seed[: HASH - 1]}"
    return name


def json_path(path: Path) -> str:
    """Return a path for people: `$.lines[*].unitPrice`."""
    steps = (
        "[*]"
        if step is None
        else f".{step}"
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step)
        else f"[{json.dumps(step, ensure_ascii=False)}]"
        for step in path
    )
    return "$" + "".join(steps)


def column_types(tables: Iterable[Table]) -> Types:
    """Return the types of all columns of data."""
    return {(table.name, name): kind for table in tables for name, kind in table.data.items()}


def read_schema(target: Target) -> Schema:
    """Return the schema of a stream as meta.columns holds it."""
    schema = Schema()
    for column in starmap(Column, target.run(SELECT_COLUMNS)):
        if column.part != "offset":
            node = _place(schema.root, column, target.header.stream)
            node.kind, node.scale, node.digits = Kind(column.kind), column.scale, column.digits
            ending = "__count" if column.part == "count" else ""
            node.name = (column.column_name or "").removesuffix(ending)
            node.first_scan = column.first_scan_id
    schema.columns = sum(1 for _ in _all_leaves(schema.root))
    return schema


def _place(root: Node, column: Column, stream: str) -> Node:
    """Return the place of a column, with all that lead to it."""
    node, rows, steps = root, None, json.loads(column.steps)
    for number, step in enumerate(steps):
        if step is None:
            rows = node if number < len(steps) - 1 else rows
            node.kind, node.item = Kind.LIST, node.item or Node()
            node = node.item
        else:
            node.kind = Kind.OBJECT
            node = node.fields.setdefault(step, Node())
    if rows is not None and column.table_name != stream:
        rows.table = column.table_name
    return node


def write_schema(target: Target, tables: Iterable[Table]) -> None:
    """Replace the rows of a stream in meta.columns."""
    columns = [column for table in tables for column in table.columns]
    rows = [{**each._asdict(), "position": at} for at, each in enumerate(columns)]
    target.run(DELETE_COLUMNS)
    if rows:
        target.db.register("load_columns", pa.Table.from_pylist(rows))
        target.run(INSERT_COLUMNS)
