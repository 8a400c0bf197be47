"""One page body to an Arrow array of its records, every digit kept.

The fast path is Arrow's strict JSON reader under an explicit schema: what does not fit is an error,
never a rounding. What it refuses goes the exact path: Python's reader with numbers as Decimal.
"""

import json
from decimal import Decimal
from typing import Annotated, Any, Optional

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.api import page
from pipelines.errors import LandingFailed
from pipelines.warehouse.schema import (
    DECIMAL_TEXT,
    TIME_TEXT,
    Kind,
    Shape,
    census,
)

# Digits that a 64-bit column always holds, and the two widths in which DuckDB stores decimals.
SAFE_DIGITS, WIDEST = 18, 38
TIME = pa.timestamp("us", tz="UTC")
_PATTERNS = {Kind.DECIMAL_TEXT: f"^({DECIMAL_TEXT})$", Kind.TIME: f"^({TIME_TEXT})$"}
_DecimalText = Annotated[str, msgspec.Meta(pattern=rf"^(?:{DECIMAL_TEXT})\Z")]
_json_text = msgspec.json.Encoder(decimal_format="number")


class Misfit(Exception):
    """A page holds something that the schema has no place for; `shape` is what it holds."""

    def __init__(self, shape: Shape) -> None:
        super().__init__("page does not fit the schema")
        self.shape = shape


def number_type(shape: Shape) -> pa.DataType:
    """Return the exact Arrow type of a shape of decimals or integers."""
    digits = shape.whole + shape.scale
    if shape.scale == 0 and digits <= SAFE_DIGITS:
        return pa.int64()
    return pa.decimal128(SAFE_DIGITS if digits <= SAFE_DIGITS else WIDEST, shape.scale)


def arrow_type(shape: Shape) -> pa.DataType:
    """Return the Arrow type in which records of a shape are read; texts stay texts."""
    match shape.kind:
        case Kind.NULL:
            return pa.null()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.NUMBER | Kind.MONEY:
            return number_type(shape)
        case Kind.OBJECT:
            return pa.struct([(name, arrow_type(each)) for name, each in shape.fields.items()])
        case Kind.ARRAY:
            return pa.list_(pa.null() if shape.item is None else arrow_type(shape.item))
        case _:
            return pa.string()


class Decoder:
    """Reads pages of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._type = arrow_type(shape)
        self._guard = _guard(shape)
        self._strict = not _only_exactly(shape)

    def records(self, body: bytes) -> pa.StructArray:
        """Return a page's records; raise Misfit where the shape is too narrow for them."""
        if self._strict:
            try:
                return self._fast(body)
            except (pa.ArrowException, msgspec.DecodeError, RecursionError):
                pass  # the exact path tells a misfit from a mere disguise, such as 1e3 for 1000
        return self._exact(body)

    def _fast(self, body: bytes) -> pa.StructArray:
        rows = page.records(body)
        if not rows or not self.shape.fields:
            raise pa.ArrowInvalid("nothing to read by column")
        if self._guard is not None:
            msgspec.json.decode(body, type=self._guard)
        text = b"\n".join(rows)
        table = pj.read_json(
            pa.py_buffer(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(self._type)),
                newlines_in_values=b"\n" in body,
                unexpected_field_behavior="error",
            ),
        )
        records = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in table.columns], fields=list(self._type)
        )
        _check_texts(records, self.shape)
        if len(records) != len(rows):
            raise LandingFailed(f"{len(rows)} records became {len(records)} rows")
        return records

    def _exact(self, body: bytes) -> pa.StructArray:
        rows = lexemes(body)
        wider = self.shape
        for row in rows:
            wider = wider.widened(census(row))
        if wider != self.shape:
            raise Misfit(wider)
        try:
            return pa.array([_converted(row, self.shape) for row in rows], self._type)
        except (pa.ArrowInvalid, UnicodeEncodeError) as error:
            raise LandingFailed(f"a record cannot be stored: {error}") from None


def lexemes(body: bytes) -> list[dict[str, Any]]:
    """Return a page's records with every number as it was written: int, else Decimal.

    Raises LandingFailed for what JSON has but no table can hold: duplicate keys, NaN, nesting
    without end, items that are no objects.
    """
    try:
        rows = json.loads(
            body,
            parse_float=Decimal,
            parse_int=_integer,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )["data"]
    except RecursionError:
        raise LandingFailed("a record is nested too deeply") from None
    except ArithmeticError:
        raise LandingFailed("a number has an exponent without end") from None
    except ValueError as error:
        raise LandingFailed(f"the page is no JSON: {error}") from None
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise LandingFailed(f"item {number} is no object")
    return list(rows)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= SAFE_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> None:
    raise LandingFailed(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise LandingFailed(f"a record has the key {twice!r} twice")
    return record


def _converted(value: Any, shape: Shape) -> Any:
    """Return a value as Arrow takes it under the shape's type."""
    if value is None:
        return None
    if shape.kind is Kind.OBJECT:
        return {name: _converted(value.get(name), each) for name, each in shape.fields.items()}
    if shape.kind is Kind.ARRAY:
        return [None if shape.item is None else _converted(each, shape.item) for each in value]
    if shape.kind is Kind.JSON:
        return _json_text.encode(value).decode()
    if shape.kind in {Kind.NUMBER, Kind.MONEY}:
        return int(value) if number_type(shape) == pa.int64() else Decimal(value)
    return value


def _guard(shape: Shape) -> Any:
    """Return the type of a page whose decimals are written as the shape says; None for none."""
    record = _record_guard(shape)
    fields = [("data", list[record])]  # type: ignore[valid-type]
    return None if record is None else msgspec.defstruct("Page", fields)


def _record_guard(shape: Shape) -> Any:
    """Return a type that refuses texts which Arrow would take for decimals.

    Arrow reads the string "007" into a decimal column as 7. Only such columns are looked at; None
    where there are none.
    """
    guard: Any = None
    if shape.kind is Kind.NUMBER and number_type(shape) != pa.int64():
        guard = int | float
    elif shape.kind is Kind.MONEY:
        guard = int | float | _DecimalText
    elif shape.kind is Kind.ARRAY and shape.item is not None:
        item = _record_guard(shape.item)
        guard = None if item is None else list[item]  # type: ignore[valid-type]
    elif shape.kind is Kind.OBJECT:
        fields = {
            name: each for name, part in shape.fields.items() if (each := _record_guard(part))
        }
        names = {f"_{number}": name for number, name in enumerate(fields)}
        struct = [(own, fields[name], None) for own, name in names.items()]
        guard = msgspec.defstruct("Guard", struct, rename=names) if struct else None
    return None if guard is None else Optional[guard]  # noqa: UP045 a type built at run time


def _only_exactly(shape: Shape) -> bool:
    """Tell whether Arrow's reader must not be trusted with a shape.

    JSON texts hold values of several kinds; of arrays of nothing but null it makes arrays of a
    wrong length (26.0.1).
    """
    parts = [*shape.fields.values(), *([shape.item] if shape.item else [])]
    nulls = shape.item is not None and shape.item.kind is Kind.NULL
    return shape.kind is Kind.JSON or nulls or any(map(_only_exactly, parts))


def _check_texts(array: pa.Array, shape: Shape) -> None:
    """Raise ArrowInvalid where a text is not what its column says of every one."""
    if shape.kind is Kind.OBJECT:
        for part, each in zip(array.flatten(), shape.fields.values(), strict=True):
            _check_texts(part, each)
    elif shape.kind is Kind.ARRAY and shape.item is not None:
        _check_texts(array.flatten(), shape.item)
    elif pattern := _PATTERNS.get(shape.kind):
        matches = pc.all(pc.match_substring_regex(array, pattern)).as_py()
        if matches is False:
            raise pa.ArrowInvalid(f"a text is no {shape.kind}")
        array.cast(TIME if shape.kind is Kind.TIME else number_type(shape))
