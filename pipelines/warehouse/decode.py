"""The records of one page to an Arrow array, every digit kept.

The fast path is Arrow's strict JSON reader under an explicit schema: what does not fit is an error,
never a rounding. What it refuses goes the exact path, record by record: Python's reader with
numbers as Decimal. What no table can hold is set aside there, with its flaw.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.api import record
from pipelines.api.problem import cleaned
from pipelines.api.record import Flaw
from pipelines.errors import LandingFailed
from pipelines.warehouse import loss
from pipelines.warehouse.arrow import TIME, landed, landed_type, number_type, read_type
from pipelines.warehouse.misfits import Aside, Placing
from pipelines.warehouse.room import Rules
from pipelines.warehouse.schema import (
    DECIMAL_TEXT,
    TIME_TEXT,
    Kind,
    Shape,
    census,
    identified_by,
    rekeyed,
)

_PATTERNS = {Kind.DECIMAL_TEXT: f"^({DECIMAL_TEXT})$", Kind.TIME: f"^({TIME_TEXT})$"}
_ODD_NAME = re.compile(r'["\\\x00-\x1f]')
_DecimalText = Annotated[str, msgspec.Meta(pattern=rf"^(?:{DECIMAL_TEXT})\Z")]


class Misfit(Exception):
    """A page holds something that the schema has no place for; `wider` has one."""

    def __init__(self, wider: "Decoder") -> None:
        super().__init__("page does not fit the schema")
        self.wider = wider

    @property
    def shape(self) -> Shape:
        """What the page needs."""
        return self.wider.shape


@dataclass(frozen=True)
class Decoded:
    """What a page holds: records, their places in the page, and the flaws of the other ones.

    `aside` counts the values that have no column.
    """

    records: pa.StructArray
    rows: Sequence[int]
    flaws: Mapping[int, Flaw] = field(default_factory=dict)
    aside: Aside = field(default_factory=Aside)


class Decoder:
    """Reads pages of one shape; `key` is the field that every record needs, None for none.

    `rules` say how much wider the pages may make the shape.
    """

    def __init__(self, shape: Shape, key: str | None = None, rules: Rules | None = None) -> None:
        self.shape = shape
        self.key = key
        self.rules = rules or Rules(shape, key=key)
        self._read = read_type(shape)
        self._landed = landed_type(shape)
        self._strict = not _only_exactly(shape)
        self._guard = _guard(shape) if self._strict else None

    def records(self, texts: Sequence[bytes]) -> Decoded:
        """Read a page's records; raise Misfit where the shape is too narrow for them."""
        if self._strict:
            try:
                fast = self._fast(texts)
                records = fast if self._landed == self._read else landed(fast, self.shape)
                return Decoded(records, range(len(texts)))
            except (pa.ArrowException, msgspec.DecodeError, RecursionError):
                pass  # the exact path tells a misfit from a mere disguise, such as 1e3 for 1000
        return self._exact(texts)

    def _fast(self, texts: Sequence[bytes]) -> pa.StructArray:
        if not texts or not self.shape.fields:
            raise pa.ArrowInvalid("nothing to read by column")
        if self._guard is not None:
            msgspec.json.decode(b"[%b]" % b",".join(texts), type=self._guard)
        text = b"\n".join(texts)
        table = pj.read_json(
            pa.py_buffer(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(self._read)),
                newlines_in_values=text.count(b"\n") >= len(texts),
                unexpected_field_behavior="error",
            ),
        )
        records = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in table.columns], fields=list(self._read)
        )
        _check_values(records, self.shape)
        self._check_key(records)
        if len(records) != len(texts):
            raise pa.ArrowInvalid(f"{len(texts)} records became {len(records)} rows")
        return records

    def _check_key(self, records: pa.StructArray) -> None:
        """Raise ArrowInvalid where a record lacks its key: the exact path sets it aside."""
        if self.key is None:
            return
        place = records.type.get_field_index(self.key)
        kind = records.type[place].type if place >= 0 else pa.null()
        if place < 0 or pa.types.is_nested(kind) or pa.types.is_boolean(kind):
            raise pa.ArrowInvalid("no column that could be the key")
        if records.field(place).null_count:
            raise pa.ArrowInvalid("a record without its key")

    def _exact(self, texts: Sequence[bytes]) -> Decoded:
        read = [self._sound(record.read(bytes(text), self.key)) for text in texts]
        flaws = {row: each for row, each in enumerate(read) if isinstance(each, Flaw)}
        rows = {row: each for row, each in enumerate(read) if not isinstance(each, Flaw)}
        wider = self.shape
        for each in rows.values():
            wider = self._rekeyed(wider, each).grown(each)
        wider = identified_by(self.rules.admitted(self.shape, wider), self.key)
        if wider != self.shape:
            raise Misfit(Decoder(wider, self.key, self.rules))
        placing = Placing(self.shape)
        try:
            records = pa.array(map(placing.record, rows.values()), self._landed)
        except pa.ArrowInvalid as error:
            raise LandingFailed(f"a record cannot be stored: {error}") from None
        loss.check(rows.values(), records, self.shape, self.rules)
        return Decoded(records, list(rows), flaws, placing.aside)

    def _rekeyed(self, shape: Shape, read: dict[str, Any]) -> Shape:
        """Return the shape with room for a key of another kind, where a person lets it be."""
        key = None if self.key is None else shape.fields.get(self.key)
        if not self.rules.rekey or self.key is None or key is None or not key.settled:
            return shape
        return rekeyed(shape, self.key) if _other_kind(key, read[self.key]) else shape

    def _sound(self, read: dict[str, Any] | Flaw) -> dict[str, Any] | Flaw:
        """Return a record, or the flaw that its key is of another kind than the published ones."""
        key = None if self.key is None else self.shape.fields.get(self.key)
        if isinstance(read, Flaw) or self.key is None or key is None or not key.settled:
            return read
        if self.rules.rekey or not _other_kind(key, read[self.key]):
            return read
        return Flaw(cleaned(self.key), f"a {key.kind} as before", "of another kind", of_key=True)


def _other_kind(key: Shape, value: Any) -> bool:
    """Tell whether a key is of another kind than those before: `1.5` and `"1.5"` may be two."""
    text_for_number = key.kind is Kind.NUMBER and isinstance(value, str)
    return text_for_number or key.widened(census(value)).misfits


def _guard(shape: Shape) -> Any:
    """Return the type of records whose decimals are written as the shape says; None for none."""
    guard = _record_guard(shape)
    return None if guard is None else list[guard]  # type: ignore[valid-type]


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
    wrong length (26.0.1); msgspec, which looks at decimals first, knows no name with a quote.
    """
    if any(_ODD_NAME.search(name) for name in shape.fields):
        return True
    parts = [*shape.fields.values(), *([shape.item] if shape.item else [])]
    nulls = shape.item is not None and shape.item.kind is Kind.NULL
    return shape.kind is Kind.JSON or nulls or any(map(_only_exactly, parts))


def _check_values(array: pa.Array, shape: Shape) -> None:
    """Raise ArrowInvalid where a text is not what its column says, or a number has more digits."""
    if shape.kind is Kind.OBJECT:
        for part, each in zip(array.flatten(), shape.fields.values(), strict=True):
            _check_values(part, each)
    elif shape.kind is Kind.ARRAY and shape.item is not None:
        _check_values(array.flatten(), shape.item)
    elif shape.kind in {Kind.NUMBER, Kind.MONEY}:
        _check_digits(array, shape)
    elif pattern := _PATTERNS.get(shape.kind):
        matches = pc.all(pc.match_substring_regex(array, pattern)).as_py()
        if matches is False:
            raise pa.ArrowInvalid(f"a text is no {shape.kind}")
        if shape.kind is Kind.TIME:
            array.cast(TIME)
        else:
            _check_digits(array.cast(number_type(shape)), shape)


def _check_digits(array: pa.Array, shape: Shape) -> None:
    """Raise ArrowInvalid where a number has more digits before the point than any before it.

    Its type may still hold it, but the shape has to know: it decides on the types to come.
    """
    ends = pc.min_max(array).as_py().values()
    if any(end is not None and abs(end) >= 10**shape.whole for end in ends):
        raise pa.ArrowInvalid("a number has more digits")
