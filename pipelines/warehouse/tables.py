"""From an array of records to flat tables: one for the stream, one for every array in it.

Nested objects become prefixed columns (`period__start`), arrays child tables (`usage__events`) with
the parent's key and `idx`, counted from 0. The same walk over no records gives the columns.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.warehouse.arrow import MISFIT, TIME, VALUE, landed_type, number_type
from pipelines.warehouse.schema import Kind, Shape

IDX = "idx"
LONGEST_NAME = 63
SUFFIX = 7  # "_" and six hexadecimal digits
REST = "_rest"  # fields beyond the limit of columns, as one text
AT = "_at"  # of staged rows only: the reading that a row is of
LINEAGE = ("_connection", "_key", "_page", "_row", "_run", "_digest", REST)
TIMES = ("first_seen", "last_seen", "changed_at", "missing_since", "valid_from", "valid_to", "why")
RESERVED = frozenset({*LINEAGE, *TIMES, AT})  # columns of ours: no record gives one of that name
TEXT = Shape(Kind.TEXT)
Columns = dict[str, pa.Array]
Path = tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """Records and where they come from.

    `pages` and `rows` are their places in the archive; `keys` identify them where no field does.
    `digests` are of their bytes as sent. `ats` tell the readings of one record apart, for its
    children too.
    """

    records: pa.StructArray
    pages: pa.Array
    rows: pa.Array
    keys: pa.Array
    digests: pa.Array
    ats: pa.Array
    connection: str
    run: str


def snake(key: str) -> str:
    """Return a key as a column name: `unitPrice` -> `unit_price`; what is no letter becomes _."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", key)
    return re.sub(r"\W", "_", words).lower() or "_"


@dataclass
class Names:
    """The table of every array and the column of every leaf, given once and never to another.

    `given` is by table, then by path; the tables' own names are under "". JSON as it stands.
    """

    given: dict[str, dict[str, str]] = field(default_factory=dict)

    def table(self, parent: str, path: Path) -> str:
        """Return the table of an array below a parent table."""
        plain = "__".join([parent, *map(snake, path)])
        return self._name("", (parent, *path), plain, set())

    def column(self, table: str, path: Path, ending: str, others: set[str]) -> str:
        """Return the column of a leaf; `others` are the table's columns that no record gives."""
        plain = ("__".join(map(snake, path)) or "value") + ending
        return self._name(table, (*path, ending), plain, others | RESERVED)

    def children(self) -> list[str]:
        """Return every child table that any shape of the stream ever gave."""
        return list(self.given.get("", {}).values())

    def _name(self, table: str, path: Path, plain: str, others: set[str]) -> str:
        names = self.given.setdefault(table, {})
        leaf = json.dumps(path)
        if leaf not in names:
            names[leaf] = _free(plain, leaf, others | set(names.values()))
        return names[leaf]


def _free(name: str, leaf: str, taken: set[str]) -> str:
    """Return a name of at most 63 characters; one that is long or taken gets a suffix."""
    plain, digest = name, leaf.encode()
    while name in taken or len(name) > LONGEST_NAME:
        digest = sha256(digest).hexdigest().encode()
        name = f"{plain[: LONGEST_NAME - SUFFIX]}_{digest[: SUFFIX - 1].decode()}"
    return name


@dataclass(frozen=True)
class Flattener:
    """Turns the records of one stream into its tables.

    `key` is the field that identifies a record; where it is None, the column `_key` does.
    """

    stream: str
    shape: Shape
    key: str | None
    names: Names

    def empty(self) -> dict[str, pa.Table]:
        """Return the tables without rows: their names, columns and types."""
        text, digests = pa.array([], pa.string()), pa.array([], pa.binary())
        rows, ats = pa.array([], pa.int32()), pa.array([], pa.int64())
        records = pa.array([], landed_type(self.shape))
        return self.tables(Batch(records, text, rows, text, digests, ats, "", ""))

    def tables(self, batch: Batch) -> dict[str, pa.Table]:
        """Return what a batch adds to each table."""
        count = len(batch.records)
        identity = {AT: batch.ats, "_connection": pa.repeat(batch.connection, count)}
        if self.key is None:
            identity["_key"] = batch.keys
        columns = identity | self._columns(self.stream, batch.records, self.shape, set())
        if self.key is not None and self.key in self.shape.fields:
            key = self.names.column(self.stream, (self.key,), "", set())
            identity[key] = columns[key]
        columns["_page"], columns["_row"] = batch.pages, batch.rows
        columns["_run"] = pa.repeat(batch.run, count)
        columns["_digest"] = batch.digests
        children = self._children(self.stream, identity, batch.records, self.shape)
        return {self.stream: pa.table(columns)} | children

    def _children(
        self, parent: str, identity: Columns, items: pa.Array, shape: Shape
    ) -> dict[str, pa.Table]:
        """Return a table for every array in the items, and for the arrays in those."""
        found: dict[str, pa.Table] = {}
        for leaf in leaves(items, shape, ()):
            if leaf.shape.item is None:
                continue
            owners, inner = pc.list_parent_indices(leaf.array), pc.list_flatten(leaf.array)
            inherited = {name: column.take(owners) for name, column in identity.items()}
            depth = sum(name.startswith(IDX) for name in identity) + 1
            inherited[IDX if depth == 1 else f"{IDX}_{depth}"] = _positions(leaf.array)
            name = self.names.table(parent, leaf.path)
            own = self._columns(name, inner, leaf.shape.item, set(inherited))
            found[name] = pa.table(inherited | own)
            found |= self._children(name, inherited, inner, leaf.shape.item)
        return found

    def _columns(self, table: str, items: pa.Array, shape: Shape, others: set[str]) -> Columns:
        """Return a column for each leaf of the items, two for a time."""
        return {
            self.names.column(table, leaf.path, ending, others) if ending != REST else REST: column
            for leaf in leaves(items, shape, ())
            for ending, column in columns(leaf)
        }


@dataclass(frozen=True)
class Leaf:
    """What is no object, or stands beside one; `ending` is that of its column's name."""

    path: Path
    array: pa.Array
    shape: Shape
    ending: str = ""


def leaves(array: pa.Array, shape: Shape, path: Path) -> Iterator[Leaf]:
    """Walk through objects to what is none; after each what did not fit it, at the end the rest."""
    beside = None
    if shape.misfits:
        beside = Leaf(path, pc.struct_field(array, MISFIT), TEXT, "__text")
        array = pc.struct_field(array, VALUE)
    if shape.kind is Kind.OBJECT:
        parts = array.flatten()
        rest = parts.pop() if shape.rest else None
        for (name, each), part in zip(shape.fields.items(), parts, strict=True):
            yield from leaves(part, each, (*path, name))
        if rest is not None:
            yield Leaf(path, rest, TEXT, REST)
    else:
        yield Leaf(path, array, shape)
    if beside is not None:
        yield beside


def columns(leaf: Leaf) -> list[tuple[str, pa.Array]]:
    """Return the columns of a leaf, by the ending of their names."""
    array, shape = leaf.array, leaf.shape
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
            return [(leaf.ending, array)]


def _offsets(times: pa.Array) -> pa.Array:
    """Return the UTC offset of each time as sent: "Z", "+05:30"."""
    return pc.if_else(pc.ends_with(times, "Z"), "Z", pc.utf8_slice_codeunits(times, start=-6))


def _positions(array: pa.Array) -> pa.Array:
    """Return the place of every item in its own array, from 0."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pa.array(np.arange(lengths.sum()) - first, pa.int64())
