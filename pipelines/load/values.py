"""How the values of one place are staged: as they were sent, until the type of a column is known.

boolean   true or false
int64     numbers without point and exponent
binary    numbers as they are spelled
string    texts
struct    several of these, or objects and lists as JSON text; `sent` says which
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.load.records import CONTAINERS, Number, has_value, json_text


class Sent(IntEnum):
    """What a value was in its record."""

    BOOLEAN = 0
    NUMBER = 1
    TEXT = 2
    CONTAINER = 3


SENT: Final = {bool: Sent.BOOLEAN, int: Sent.NUMBER, Number: Sent.NUMBER, str: Sent.TEXT}
MIXED: Final = pa.struct({"text": pa.string(), "sent": pa.int8()})


def to_staged(values: Sequence[Any], types: set[type]) -> pa.Array:
    """Return values as they were sent; `types` are those of the values that are not None."""
    if types <= {bool}:
        return pa.array(values, pa.bool_())
    if types <= {str}:
        return pa.array(values, pa.string())
    if types <= {int}:
        # An integer that is no BIGINT overflows. Then all are staged as they are spelled.
        with suppress(OverflowError):
            return pa.array(values, pa.int64())
    if types <= {int, Number}:
        spelled = [None if value is None else str(value) for value in values]
        return pa.array(spelled, pa.string()).cast(pa.binary())
    return pa.array([_mixed(value) for value in values], MIXED)


def _mixed(value: Any) -> dict[str, Any] | None:
    """Return a value with what it was; objects full of nulls are no value."""
    if not has_value(value):
        return None
    if type(value) in CONTAINERS:
        return {"text": json_text(value), "sent": Sent.CONTAINER}
    return {"text": spell(value), "sent": SENT[type(value)]}


def spell(value: Any) -> str:
    """Return a scalar as JSON spells it, a text without quotes."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)


def texts_of(staged: pa.Array) -> pa.Array:
    """Return staged values as text, each as it was spelled."""
    if pa.types.is_struct(staged.type):
        return pc.struct_field(staged, "text")
    return staged.cast(pa.string())


def parts(staged: pa.Array) -> Iterator[tuple[Sent, pa.Array]]:
    """Yield staged values by what they were, without nulls: integers as int64, others as text."""
    present = staged.drop_null()
    if len(present) == 0:
        return
    if pa.types.is_struct(present.type):
        yield from _parts_of_mixed(present)
    elif pa.types.is_boolean(present.type):
        yield Sent.BOOLEAN, present
    elif pa.types.is_integer(present.type):
        yield Sent.NUMBER, present
    elif pa.types.is_string(present.type):
        yield Sent.TEXT, present
    else:
        yield Sent.NUMBER, texts_of(present)


def _parts_of_mixed(mixed: pa.Array) -> Iterator[tuple[Sent, pa.Array]]:
    codes = pc.struct_field(mixed, "sent")
    for sent in Sent:
        part = texts_of(mixed.filter(pc.equal(codes, sent.value)))
        if len(part):
            yield sent, part


def texts_sent(staged: pa.Array) -> Iterator[pa.Array]:
    """Yield the staged values, or items of lists, that were sent as text."""
    for sent, part in parts(single_values(staged)):
        if sent is Sent.TEXT:
            yield part


def single_values(array: pa.Array) -> pa.Array:
    """Return the values of an array, or the items of the lists in it."""
    return array.flatten() if pa.types.is_list(array.type) else array
