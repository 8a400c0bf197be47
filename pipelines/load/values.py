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

from pipelines.load.records import CONTAINERS, Number, json_text
from pipelines.load.schema import has_value


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
        with suppress(OverflowError):  # for one that is no BIGINT
            return pa.array(values, pa.int64())
    if types <= {int, Number}:
        spelled = [None if each is None else str(each) for each in values]
        return pa.array(spelled, pa.string()).cast(pa.binary())
    return pa.array([_mixed(each) for each in values], MIXED)


def _mixed(value: Any) -> dict[str, Any] | None:
    """Return a value with what it was; objects full of nulls are no value."""
    if type(value) in CONTAINERS:
        return {"text": json_text(value), "sent": Sent.CONTAINER} if has_value(value) else None
    return None if value is None else {"text": spell(value), "sent": SENT[type(value)]}


def spell(value: Any) -> str:
    """Return a scalar as JSON spells it, a text without quotes."""
    if type(value) is bool:
        return "true" if value else "false"
    return str(value)


def texts_of(staged: pa.Array) -> pa.Array:
    """Return staged values as text, each as it was spelled."""
    if pa.types.is_struct(staged.type):
        return pc.struct_field(staged, "text")
    return staged.cast(pa.string())


def parts(staged: pa.Array) -> Iterator[tuple[Sent, pa.Array]]:
    """Yield staged values by what they were, without nulls: integers as int64, others as text."""
    found = staged.drop_null()
    if len(found) == 0:
        return
    if pa.types.is_struct(found.type):
        codes = pc.struct_field(found, "sent")
        for sent in Sent:
            part = texts_of(found.filter(pc.equal(codes, sent.value)))
            if len(part):
                yield sent, part
    elif pa.types.is_boolean(found.type):
        yield Sent.BOOLEAN, found
    elif pa.types.is_integer(found.type):
        yield Sent.NUMBER, found
    else:
        is_text = pa.types.is_string(found.type)
        yield Sent.TEXT if is_text else Sent.NUMBER, texts_of(found)
