"""The tables and columns of a stream: names, types and where they come from (meta.columns)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import duckdb
import pyarrow as pa

from pipelines.load.schema import DIGITS, Kind, Node, Path, Schema

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
SELECT
    columns.table_name, columns.column_name, columns.part, columns.steps, columns.kind,
    columns.scale, columns.digits, columns.first_scan_id
FROM meta.columns AS columns
WHERE columns.stream = $stream
ORDER BY columns.position
"""
DELETE_COLUMNS = "DELETE FROM meta.columns WHERE columns.stream = $stream"
INSERT_COLUMNS = "INSERT INTO meta.columns BY NAME SELECT added.* FROM load_columns AS added"


@dataclass(frozen=True)
class Column:
    """One column of data. `part`: value, offset (of a time), count (of a list), or none yet."""

    name: str
    part: str
    type: str
    path: Path
    node: Node
    first_scan: str


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
    def data(self) -> dict[str, str]:
        """Names and types of the columns of data."""
        return {each.name: each.type for each in self.columns if each.part != "none"}


def list_tables(root: Node, stream: str) -> list[Table]:
    """Return the tables of a stream, the stream's own first. Every place must have a name."""
    return list(_tables(root, Table(stream)))


def _tables(row: Node, table: Table) -> Iterator[Table]:
    yield table
    for path, node in leaves(row, table.path):
        table.columns.extend(_columns(node, path))
        if node.item is not None and node.has_rows:
            yield from _tables(node.item, Table(node.table, (*path, None), table.depth + 1))


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield what is below a row and is not an object."""
    for name, each in node.fields.items():
        if each.kind is Kind.OBJECT:
            yield from leaves(each, (*path, name))
        else:
            yield (*path, name), each


def _columns(node: Node, path: Path) -> Iterator[Column]:
    if node.kind is Kind.NULL:
        yield Column("", "none", "", path, node, "")
    elif node.kind is Kind.LIST:
        yield Column(f"{node.name}__count", "count", "BIGINT", path, node, node.first_scan)
        if node.item is not None and node.item.kind not in {Kind.OBJECT, Kind.NULL}:
            kind = f"{sql_type(node.item)}[]"
            yield Column(node.name, "value", kind, (*path, None), node.item, node.first_scan)
    else:
        yield Column(node.name, "value", sql_type(node), path, node, node.first_scan)
        if node.kind is Kind.TIME:
            yield Column(f"{node.name}__offset", "offset", "VARCHAR", path, node, node.first_scan)


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


def read_schema(db: duckdb.DuckDBPyConnection, stream: str) -> Schema:
    """Return the schema of a stream as meta.columns holds it."""
    schema = Schema()
    for table, name, part, steps, kind, *sizes in db.execute(
        SELECT_COLUMNS, {"stream": stream}
    ).fetchall():
        if part == "offset":
            continue
        node = _place(schema.root, tuple(json.loads(steps)), stream, table)
        node.kind = Kind(kind)
        node.scale, node.digits, node.first_scan = sizes
        node.name = (name or "").removesuffix("__count") if part == "count" else name or ""
    schema.columns = sum(1 for _ in _all_leaves(schema.root))
    return schema


def _place(root: Node, steps: Path, stream: str, table: str) -> Node:
    """Return the place at the end of a path, with all that lead to it."""
    node, rows = root, None
    for number, step in enumerate(steps):
        if step is None:
            rows = node if number < len(steps) - 1 else rows
            node.kind, node.item = Kind.LIST, node.item or Node()
            node = node.item
        else:
            node.kind = Kind.OBJECT
            node = node.fields.setdefault(step, Node())
    if rows is not None and table != stream:
        rows.table = table
    return node


def write_schema(db: duckdb.DuckDBPyConnection, stream: str, tables: list[Table]) -> None:
    """Replace the rows of a stream in meta.columns."""
    db.execute(DELETE_COLUMNS, {"stream": stream})
    listed = [(table.name, each) for table in tables for each in table.columns]
    rows = [
        {
            "stream": stream,
            "table_name": table,
            "column_name": each.name or None,
            "part": each.part,
            "type": each.type,
            "path": json_path(each.path),
            "steps": json.dumps(each.path),
            "kind": each.node.kind.value,
            "scale": each.node.scale,
            "digits": each.node.digits,
            "first_scan_id": each.first_scan,
            "position": position,
        }
        for position, (table, each) in enumerate(listed)
    ]
    if rows:
        db.register("load_columns", pa.Table.from_pylist(rows))
        db.execute(INSERT_COLUMNS)


def changes(
    before: Mapping[tuple[str, str], str], tables: list[Table]
) -> dict[tuple[str, str], str]:
    """Return the columns that are new or have another type, by table and name, with their type."""
    return {
        (table.name, name): kind
        for table in tables
        for name, kind in table.data.items()
        if before.get((table.name, name)) != kind
    }
