"""Arrow types of a schema, and checks of what Arrow's JSON reader made of a page."""

import re
from collections.abc import Iterator
from secrets import token_hex
from typing import Any, Optional

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.load.fit import EARLIEST, LATEST
from pipelines.load.schema import DIGITS, PATTERNS, TEXTS, Kind, Node

TIME = pa.timestamp("us", tz="UTC")
EXTRA = "_extra"
REST = f"_rest_{token_hex(8)}"  # the rest of a row, while it is decoded: no record has this member
_ODD_NAME = re.compile(r'["\\\x00-\x1f]')


_SIMPLE = {Kind.NULL: pa.null(), Kind.BOOLEAN: pa.bool_(), Kind.INTEGER: pa.int64()}


class Misfit(Exception):
    """A page holds a value that the schema has no place for."""


def nodes(node: Node) -> Iterator[Node]:
    """Yield a place and all places below it."""
    yield node
    for each in (*node.fields.values(), *([node.item] if node.item else [])):
        yield from nodes(each)


def read_type(node: Node, *, rest: bool, is_row: bool = True) -> pa.DataType:
    """Return the Arrow type in which a place is read. With `rest`, rows have a member for it."""
    if node.kind is Kind.OBJECT:
        fields = [
            (name, read_type(each, rest=rest, is_row=False)) for name, each in node.fields.items()
        ]
        return pa.struct([*fields, (REST, pa.string())] if is_row and rest else fields)
    if node.kind is Kind.LIST:
        return pa.list_(_item_type(node.item, rest=rest))
    if node.kind is Kind.DECIMAL:
        return pa.decimal128(DIGITS, node.scale)
    return _SIMPLE.get(node.kind, pa.string())


def _item_type(item: Node | None, *, rest: bool) -> pa.DataType:
    """Return the type of items; of nothing but null, Arrow makes lists of a wrong length."""
    if item is None or item.kind is Kind.NULL:
        return pa.string()
    return read_type(item, rest=rest)


def conform(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array in a wider type: with members it lacks, or with wider numbers."""
    if array.type == wanted:
        return array
    if pa.types.is_struct(wanted) and pa.types.is_struct(array.type):
        parts = {f.name: part for f, part in zip(array.type, array.flatten(), strict=True)}
        members = [
            conform(parts[f.name], f.type) if f.name in parts else pa.nulls(len(array), f.type)
            for f in wanted
        ]
        return pa.StructArray.from_arrays(members, fields=list(wanted), mask=array.is_null())
    if pa.types.is_list(wanted) and pa.types.is_list(array.type):
        values = conform(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=wanted, mask=array.is_null())
    if array.null_count == len(array):
        return pa.nulls(len(array), wanted)
    return array.cast(wanted)


def decimals_guard(node: Node) -> Any:
    """Return a msgspec type that refuses texts where numbers are expected; None if there are none.

    Arrow reads the text "007" into a decimal column as 7.
    """
    guard: Any = None
    if node.kind is Kind.DECIMAL:
        guard = int | float
    elif node.item is not None and node.kind is Kind.LIST:
        item = decimals_guard(node.item)
        guard = None if item is None else list[item]  # type: ignore[valid-type]
    elif node.kind is Kind.OBJECT:
        found = {name: decimals_guard(each) for name, each in node.fields.items()}
        used = [(name, each) for name, each in found.items() if each is not None]
        names = {f"f{number}": name for number, (name, _) in enumerate(used)}
        members = [(f"f{number}", each, None) for number, (_, each) in enumerate(used)]
        guard = msgspec.defstruct("Guard", members, rename=names) if members else None
    return None if guard is None else Optional[guard]  # noqa: UP045 - a type built at run time


def has_odd_names(root: Node) -> bool:
    """Return whether msgspec cannot name every member, so that the guard would miss one."""
    return any(_ODD_NAME.search(name) for node in nodes(root) for name in node.fields)


def observe(array: pa.Array, node: Node) -> None:
    """Note the sizes of numbers and which kinds texts fit. Raises Misfit for a text that does not.

    `array` is as read; members behind those of the node are ignored.
    """
    if node.kind is Kind.OBJECT:
        for part, each in zip(array.flatten(), node.fields.values(), strict=False):
            observe(part, each)
    elif node.kind is Kind.LIST:
        _observe_items(array.flatten(), node.item)
    elif node.kind in {Kind.INTEGER, Kind.DECIMAL}:
        ends = pc.min_max(array).as_py().values()
        sizes = [len(str(abs(int(end)))) for end in ends if end is not None]
        node.digits = max(node.digits, *sizes) if sizes else node.digits
    elif node.candidates:
        node.candidates = {kind for kind in node.candidates if _texts_fit(array, node, kind)}
    elif (
        node.kind in TEXTS and node.kind is not Kind.TEXT and not _texts_fit(array, node, node.kind)
    ):
        raise Misfit


def _observe_items(items: pa.Array, item: Node | None) -> None:
    if item is not None and item.kind is not Kind.NULL:
        observe(items, item)
    elif items.null_count < len(items):
        raise Misfit


def _texts_fit(array: pa.Array, node: Node, kind: Kind) -> bool:
    """Return whether every text of an array is of a kind; remember the size of decimals."""
    if array.null_count == len(array):
        return True
    if not pc.all(pc.match_substring_regex(array, PATTERNS[kind])).as_py():
        return False
    if kind is Kind.DECIMAL_TEXT:
        return _decimals_fit(array, node)
    try:
        return _in_range(array.cast(TIME)) if kind is Kind.TIME else _are_days(array)
    except pa.ArrowInvalid:
        return False


def _are_days(array: pa.Array) -> bool:
    array.cast(pa.date32())
    return not pc.any(pc.starts_with(array, "0000")).as_py()


def _in_range(times: pa.Array) -> bool:
    ends = pc.min_max(times.cast(pa.int64())).as_py()
    return bool(_microseconds(EARLIEST) <= ends["min"] and ends["max"] < _microseconds(LATEST))


def _microseconds(time: Any) -> int:
    value: int = pa.scalar(time, TIME).value
    return value


def _decimals_fit(array: pa.Array, node: Node) -> bool:
    digits, scale = _text_sizes(array)
    if node.kind is Kind.DECIMAL_TEXT:
        fits = scale <= node.scale and digits <= DIGITS - node.scale
    else:
        fits = max(digits, node.digits) + max(scale, node.scale) <= DIGITS
        node.scale = max(scale, node.scale) if fits else node.scale
    node.digits = max(digits, node.digits) if fits else node.digits
    return fits


def _text_sizes(array: pa.Array) -> tuple[int, int]:
    """Return the most digits before and behind the point of decimal texts."""
    unsigned = pc.utf8_ltrim(array, "-")
    lengths, points = pc.utf8_length(unsigned), pc.find_substring(unsigned, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    behind = pc.if_else(pc.less(points, 0), 0, pc.subtract(pc.subtract(lengths, points), 1))
    return pc.max(whole).as_py(), pc.max(behind).as_py()


def decide(root: Node) -> None:
    """Settle the kind of every text place that is new in this scan, by all of its values.

    Decimals need a point in at least one value: digits alone may be an identifier.
    """
    for node in nodes(root):
        if node.kind is Kind.TEXT and node.candidates:
            candidates = node.candidates - ({Kind.DECIMAL_TEXT} if not node.scale else set())
            node.kind = next((kind for kind in PATTERNS if kind in candidates), Kind.TEXT)
            node.candidates = set()
