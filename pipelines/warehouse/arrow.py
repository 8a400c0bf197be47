"""The Arrow types of a shape: as Arrow's JSON reader takes them, and as they are landed.

Landed differ where something came that has no column: beside a value its misfit, at the end of a
record the rest of its fields, both as text. Here: types, and giving what was read those places. Not
here: how values get there (decode, misfits).
"""

from typing import Any

import pyarrow as pa

from pipelines.warehouse.schema import Kind, Shape

# Digits that a 64-bit column always holds, and the two widths in which DuckDB stores decimals.
SAFE_DIGITS, WIDEST = 18, 38
TIME = pa.timestamp("us", tz="UTC")
VALUE, MISFIT = "value", "misfit"


def number_type(shape: Shape) -> pa.DataType:
    """Return the exact Arrow type of a shape of decimals or integers."""
    digits = shape.whole + shape.scale
    if shape.scale == 0 and digits <= SAFE_DIGITS:
        return pa.int64()
    return pa.decimal128(SAFE_DIGITS if digits <= SAFE_DIGITS else WIDEST, shape.scale)


def read_type(shape: Shape) -> pa.DataType:
    """Return the Arrow type in which records of a shape are read; texts stay texts."""
    match shape.kind:
        case Kind.NULL:
            return pa.null()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.NUMBER | Kind.MONEY:
            return number_type(shape)
        case Kind.OBJECT:
            return pa.struct([(name, read_type(each)) for name, each in shape.fields.items()])
        case Kind.ARRAY:
            return pa.list_(pa.null() if shape.item is None else read_type(shape.item))
        case _:
            return pa.string()


def landed_type(shape: Shape) -> pa.DataType:
    """Return the Arrow type in which records of a shape are landed."""
    if shape.kind is Kind.OBJECT:
        fields = [(name, landed_type(each)) for name, each in shape.fields.items()]
        landed = pa.struct([*fields, *([(rest_name(shape), pa.string())] if shape.rest else [])])
    elif shape.kind is Kind.ARRAY and shape.item is not None:
        landed = pa.list_(landed_type(shape.item))
    else:
        landed = read_type(shape)
    return pa.struct([(VALUE, landed), (MISFIT, pa.string())]) if shape.misfits else landed


def rest_name(shape: Shape) -> str:
    """Return a name for the rest of a record's fields that none of them has."""
    name = "_rest"
    while name in shape.fields:
        name += "_"
    return name


def landed(array: pa.Array, shape: Shape) -> pa.Array:
    """Return what was read as it is landed: with places for misfits and rest, which it lacks."""
    if array.type == landed_type(shape):
        return array
    if shape.kind is Kind.OBJECT:
        names = [*shape.fields, *([rest_name(shape)] if shape.rest else [])]
        parts: list[Any] = [
            landed(part, each)
            for part, each in zip(array.flatten(), shape.fields.values(), strict=True)
        ]
        parts += [pa.nulls(len(array), pa.string())] if shape.rest else []
        array = pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    elif shape.kind is Kind.ARRAY and shape.item is not None:
        offsets = array.offsets  # relative to `values`, also of a slice
        array = pa.ListArray.from_arrays(
            offsets, landed(array.values, shape.item), mask=array.is_null()
        )
    if shape.misfits:
        none = pa.nulls(len(array), pa.string())
        array = pa.StructArray.from_arrays([array, none], [VALUE, MISFIT])
    return array
