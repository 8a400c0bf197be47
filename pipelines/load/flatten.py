"""Turns decoded records into one flat Arrow table for each table of the stream."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.errors import LoadFailed
from pipelines.load.arrow import EXTRA, TIME
from pipelines.load.columns import leaves
from pipelines.load.schema import DIGITS, Kind, Node
from pipelines.load.stage import Part

Columns = dict[str, pa.Array]


def flatten(part: Part, root: Node, stream: str) -> dict[str, Any]:
    """Return a table for the records and for each list of objects in them, by name.

    The records are in the read type of the root with its rest. Raises LoadFailed if a value would
    become NULL.
    """
    own = dict(zip(part.index.schema.names, part.index.columns, strict=True))
    found = {stream: pa.table({**own, **_data(part.records, root, stream)})}
    _add_children(found, part.records, root, {"_parent_key": own["_key"]})
    return found


def _add_children(
    found: dict[str, Any], rows: pa.StructArray, row: Node, identity: Columns
) -> None:
    """Add a table for each list of objects in some rows; `identity` says which row each one is."""
    arrays = _arrays(rows, row)
    for (_, node), array in zip(leaves(row), arrays, strict=True):
        if node.item is None or not node.has_rows:
            continue
        owners, items = pc.list_parent_indices(array), pc.list_flatten(array)
        inherited = {name: column.take(owners) for name, column in identity.items()}
        inner = {"_parent_key": inherited.pop("_parent_key"), "_index": _positions(array)}
        for depth, column in enumerate(inherited.values(), 1):
            inner["_parent_index" if depth == 1 else f"_parent_index_{depth}"] = column
        found[node.table] = pa.table({**inner, **_data(items, node.item, node.table)})
        _add_children(found, items, node.item, inner)


def _arrays(rows: pa.StructArray, row: Node) -> list[pa.Array]:
    """Return the array of each leaf of some rows, in the order of `leaves`."""
    found: list[pa.Array] = []
    for part, each in zip(rows.flatten(), row.fields.values(), strict=False):
        found += _arrays(part, each) if each.kind is Kind.OBJECT else [part]
    return found


def _data(rows: pa.StructArray, row: Node, table: str) -> Columns:
    """Return the columns of data, and the rest of each row."""
    columns: Columns = {}
    for (_, node), array in zip(leaves(row), _arrays(rows, row), strict=True):
        columns |= _leaf(array, node, table)
    return {**columns, EXTRA: rows.flatten()[-1]}


def _leaf(array: pa.Array, node: Node, table: str) -> Columns:
    """Return the columns of one place."""
    if node.kind is Kind.NULL:
        return {}
    if node.kind is Kind.LIST:
        counts = {f"{node.name}__count": pc.list_value_length(array).cast(pa.int64())}
        plain = node.item is not None and node.item.kind not in {Kind.OBJECT, Kind.NULL}
        return {**counts, node.name: array} if plain else counts
    try:
        typed = array.cast(_type(array, node))
    except pa.ArrowInvalid as error:
        raise _loss(node, table, str(error)) from error
    if typed.null_count != array.null_count:
        raise _loss(node, table, "values became NULL")
    if node.kind is Kind.TIME:
        offsets = pc.if_else(
            pc.ends_with(array, "Z"), "Z", pc.utf8_slice_codeunits(array, start=-6)
        )
        return {node.name: typed, f"{node.name}__offset": offsets}
    return {node.name: typed}


def _type(array: pa.Array, node: Node) -> pa.DataType:
    if node.kind is Kind.DECIMAL_TEXT:
        return pa.decimal128(DIGITS, node.scale)
    return {Kind.DATE: pa.date32(), Kind.TIME: TIME}.get(node.kind, array.type)


def _loss(node: Node, table: str, reason: str) -> LoadFailed:
    return LoadFailed(
        f"Values of column {table}.{node.name} cannot be stored without loss: {reason}. Nothing "
        "of this scan is loaded; the scan file keeps every record.",
        "Report this defect of partner-sync with the scan file.",
    )


def _positions(lists: pa.Array) -> pa.Array:
    """Return the place of every item in its own list, from 0."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pa.array(np.arange(lengths.sum()) - first, pa.int64())
