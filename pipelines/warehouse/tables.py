"""From an array of records to flat tables: one for the stream, one for every array in it.

Nested objects become prefixed columns (`period__start`), arrays child tables (`usage__events`) with
the parent's key and `idx`, counted from 0. The same walk over no records gives the columns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.warehouse.decode import TIME, arrow_type, number_type
from pipelines.warehouse.schema import Kind, Shape

IDX = "idx"
LONGEST_NAME = 63
SUFFIX = 7  # "_" and six hexadecimal digits
RESERVED = frozenset({"_connection", "_key", "_page", "_row", "_run"})
Columns = dict[str, pa.Array]


@dataclass(frozen=True)
class Batch:
    """Records of one page and where they come from.

    `rows` are their positions in the page; `keys` identify them where no field does.
    """

    records: pa.StructArray
    rows: pa.Array
    keys: pa.Array
    connection: str
    page: str
    run: str


def snake(key: str) -> str:
    """Return a key as a column name: `unitPrice` -> `unit_price`; what is no letter becomes _."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", key)
    return re.sub(r"\W", "_", words).lower() or "_"


def unique(name: str, path: tuple[str, ...], taken: set[str]) -> str:
    """Take a name of at most 63 characters; one that is long or taken gets a stable suffix."""
    if name in taken or len(name) > LONGEST_NAME:
        digest = sha256("\0".join(path).encode(errors="surrogatepass")).hexdigest()
        name = f"{name[: LONGEST_NAME - SUFFIX]}_{digest[: SUFFIX - 1]}"
    taken.add(name)
    return name


@dataclass(frozen=True)
class Flattener:
    """Turns the records of one stream into its tables.

    `key` is the field that identifies a record; where it is None, the column `_key` does.
    """

    stream: str
    shape: Shape
    key: str | None

    def empty(self) -> dict[str, pa.Table]:
        """Return the tables without rows: their names, columns and types."""
        nothing = pa.array([], pa.string())
        records = pa.array([], arrow_type(self.shape))
        return self.tables(Batch(records, nothing.cast(pa.int32()), nothing, "", "", ""))

    def tables(self, batch: Batch) -> dict[str, pa.Table]:
        """Return what a batch adds to each table."""
        count = len(batch.records)
        columns = {"_connection": pa.repeat(batch.connection, count)}
        if self.key is None:
            columns["_key"] = batch.keys
        named = _named(columns, batch.records, self.shape)
        identity = {
            "_connection": columns["_connection"],
            **({"_key": batch.keys} if self.key is None else _only(columns, named, (self.key,))),
        }
        columns["_page"] = pa.repeat(batch.page, count)
        columns["_row"] = batch.rows
        columns["_run"] = pa.repeat(batch.run, count)
        parent = _Parent(self.stream, identity, {self.stream})
        return {self.stream: pa.table(columns)} | _children(parent, batch.records, self.shape)


@dataclass(frozen=True)
class _Parent:
    """What children inherit: the table's name, its identifying columns, and the names in use."""

    name: str
    identity: Columns
    tables: set[str]


def _children(parent: _Parent, items: pa.Array, shape: Shape) -> dict[str, pa.Table]:
    """Return a table for every array in the items, and for the arrays in those."""
    found: dict[str, pa.Table] = {}
    for path, array, each in _leaves(items, shape, ()):
        if each.kind is not Kind.ARRAY or each.item is None:
            continue
        owners = pc.list_parent_indices(array)
        identity = {name: column.take(owners) for name, column in parent.identity.items()}
        depth = sum(name.startswith(IDX) for name in identity) + 1
        identity[IDX if depth == 1 else f"{IDX}_{depth}"] = _positions(array)
        name = unique("__".join([parent.name, *map(snake, path)]), path, parent.tables)
        columns, inner = dict(identity), pc.list_flatten(array)
        _named(columns, inner, each.item)
        found[name] = pa.table(columns)
        found |= _children(_Parent(name, identity, parent.tables), inner, each.item)
    return found


def _named(columns: Columns, items: pa.Array, shape: Shape) -> dict[tuple[str, ...], str]:
    """Add a column for each leaf of the items; return the name of each leaf's first column."""
    taken = set(columns) | RESERVED
    names: dict[tuple[str, ...], str] = {}
    for path, array, each in _leaves(items, shape, ()):
        plain = "__".join(map(snake, path)) or "value"
        for ending, column in _columns(array, each):
            name = unique(plain + ending, (*path, ending), taken)
            columns[name] = column
            names.setdefault(path, name)
    return names


def _only(columns: Columns, names: dict[tuple[str, ...], str], path: tuple[str, ...]) -> Columns:
    return {names[path]: columns[names[path]]} if path in names else {}


def _leaves(
    array: pa.Array, shape: Shape, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], pa.Array, Shape]]:
    """Walk through objects to what is none."""
    if shape.kind is not Kind.OBJECT:
        yield path, array, shape
        return
    for (name, each), part in zip(shape.fields.items(), array.flatten(), strict=True):
        yield from _leaves(part, each, (*path, name))


def _columns(array: pa.Array, shape: Shape) -> list[tuple[str, pa.Array]]:
    """Return the columns of a leaf, by the ending of their names."""
    match shape.kind:
        case Kind.NULL:
            return [("", array.cast(pa.string()))]
        case Kind.DECIMAL_TEXT:
            return [("", array.cast(number_type(shape)))]
        case Kind.TIME:
            return [("", array.cast(TIME)), ("__offset", _offsets(array))]
        case Kind.ARRAY:
            # Apart from an empty array, no array at all: NULL here, no rows in the child table.
            return [("__count", pc.list_value_length(array).cast(pa.int64()))]
        case _:
            return [("", array)]


def _offsets(times: pa.Array) -> pa.Array:
    """Return the UTC offset of each time as sent: "Z", "+05:30"."""
    return pc.if_else(pc.ends_with(times, "Z"), "Z", pc.utf8_slice_codeunits(times, start=-6))


def _positions(array: pa.Array) -> pa.Array:
    """Return the place of every item in its own array, from 0."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pa.array(np.arange(lengths.sum()) - first, pa.int64())
