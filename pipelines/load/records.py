"""Reads raw records exactly, every number as it is spelled, or says why one is not usable."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from itertools import chain
from math import isinf
from typing import Any

import msgspec
import numpy as np

from pipelines.core.key import key_fields, list_text
from pipelines.core.parse import EXACT, LARGEST_EXPONENT, plain_text, shortest
from pipelines.core.text import printable

# Objects and arrays inside each other, the record itself counted.
DEEPEST = 64
# Characters. Python converts fewer than 640 whatever its limit is; others stay as spelled.
LONGEST_INTEGER = 400
CONTAINERS = frozenset({dict, list})
# Digits behind the point that a column has at most: 20 of 38 remain before it.
SCALE = 18
SMALLEST = Decimal((0, (1,), -SCALE))


class Number(str):
    """A JSON number as it is spelled. JSON text of it is a string, so no reader rounds it."""

    __slots__ = ()


class UnusableRecord(Exception):
    """A record that cannot be loaded; the message says why."""


# What `decode` and the counting of members raise for a record that must be read strictly.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnusableRecord)


def read_record(raw: bytes) -> dict[str, Any] | UnusableRecord:
    """Return a record, numbers as `int` or `Number`, or why it is not usable."""
    with suppress(*DECODE_ERRORS):
        record = decode(raw)
        # msgspec keeps the last of two members with one name, without an error.
        if count_members([record]) == count_names([raw]):
            return record
    try:
        return _read_strictly(raw)
    except UnusableRecord as error:
        return error


def count_names(raws: Sequence[bytes]) -> int:
    """Return the number of members in records, or a larger one; -1 if they cannot be counted.

    If there are as many members as this, none was lost because its name is in an object twice.
    """
    names = 0
    # 100 records at once: for all at once, numpy would take twice as long.
    for first in range(0, len(raws), 100):
        text = np.frombuffer(b",".join(raws[first : first + 100]), np.uint8)
        before_colons = text[np.flatnonzero(text == ord(":")) - 1]
        # A space may stand between a name and its colon, or before a colon within a text.
        if np.any(before_colons <= ord(" ")):
            return -1
        names += int(np.count_nonzero(before_colons == ord('"')))
    return names


def count_members(level: Sequence[Any], deepest: int = DEEPEST) -> int:
    """Return the number of members in values. Raises RecursionError for one that is too deep."""
    members = 0
    # Level by level instead of by recursion, with loops in C: this runs for every record.
    for _ in range(deepest):
        objects = [value for value in level if type(value) is dict]
        lists = [value for value in level if type(value) is list]
        members += sum(map(len, objects))
        inner = chain(*map(dict.values, objects), *lists)
        level = [value for value in inner if type(value) in CONTAINERS]
        if not level:
            return members
    raise RecursionError


def _read_strictly(raw: bytes) -> dict[str, Any]:
    """Return a record. Raises UnusableRecord for whatever is odd in it."""
    try:
        record = _parse(raw.decode().strip(" \t\r\n"))
        # Both raise errors for what no column can hold: too many levels, half of a surrogate pair.
        count_members([record])
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise UnusableRecord("It is not UTF-8 text.") from None
    except UnicodeEncodeError:
        raise UnusableRecord("A text in it holds half of a surrogate pair.") from None
    except RecursionError:
        raise UnusableRecord(f"It is nested more than {DEEPEST} levels deep.") from None
    except ValueError as error:
        raise UnusableRecord(f"It is not JSON: {printable(error)}.") from None
    if not isinstance(record, dict):
        raise UnusableRecord("It is not an object.")
    return record


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises UnusableRecord if a name is in it twice."""
    by_name = dict(members)
    if len(by_name) < len(members):
        ((repeated, _),) = Counter(name for name, _ in members).most_common(1)
        raise UnusableRecord(f"The field `{printable(repeated, 80)}` is in it twice.")
    return by_name


def read_key(raw: bytes, name: str) -> str | None:
    """Return the key of a record that is not usable; None where nobody can tell it."""
    # An array would be read as a list of members, too.
    if not raw.lstrip().startswith(b"{"):
        return None
    fields = key_fields(name)
    try:
        members = _parse_members(raw.decode(errors="replace"))
        of_key = [member for member in members if member[0] in fields]
        # With a field missing, or there twice, nobody can tell the key.
        if len(of_key) != len(fields):
            return None
        key = record_key(dict(of_key), fields)
        if key is not None:
            # Raises UnicodeEncodeError, a ValueError, for half of a surrogate pair.
            key.encode()
    except (ValueError, RecursionError):
        return None
    return key


def record_key(record: dict[str, Any], fields: Sequence[str]) -> str | None:
    """Return the key of a record as text; None where a field of it identifies nothing.

    The key of several fields is JSON text of a list, so that no two are spelled the same.
    """
    texts = []
    for name in fields:
        text = key_text(record.get(name))
        if text is None:
            return None
        texts.append(text)
    if not texts:
        return None
    if len(texts) == 1:
        return texts[0]
    return list_text(texts)


def key_text(value: Any) -> str | None:
    """Return a key as text; None where the value identifies nothing.

    A number is written plainly: 1, 1.0 and 1e0 are the same key.
    """
    if type(value) in {str, int}:
        return str(value)
    if not isinstance(value, Number):
        return None
    number = to_decimal(value)
    if number is None:
        return None
    return plain_text(number)


def to_decimal(number: int | str) -> Decimal | None:
    """Return a number exactly; None where its exponent is beyond any that is stored."""
    try:
        decimal = Decimal(number)
    except InvalidOperation:
        return None
    if abs(decimal.adjusted()) > LARGEST_EXPONENT:
        return None
    return decimal


def scale_of(number: Decimal) -> int:
    """Return how many digits a number has behind the point as it is written."""
    return max(0, -int(number.as_tuple().exponent))


def nearest(number: Decimal) -> Decimal:
    """Return a number as written, if it has at most 18 digits behind the point; else the nearest.

    Nobody bills less than the 18th digit.
    """
    if scale_of(number) <= SCALE:
        return number
    return shortest(number.quantize(SMALLEST, context=EXACT))


def unpadded(text: str) -> str:
    """Return a number text without spaces around it and zeros before it."""
    plain = text.strip()
    sign = "-" if plain.startswith("-") else ""
    digits = plain.removeprefix("-").lstrip("0")
    # Of 0, 0.5 and 0e3 the zero before the point stays: without it, they are no JSON numbers.
    if not digits[:1].isdigit():
        digits = f"0{digits}"
    return sign + digits


def json_text(value: Any) -> str:
    """Return a value as JSON text, numbers as they are spelled, members in the order of names."""
    if isinstance(value, dict):
        members = (f"{json_text(name)}:{json_text(value[name])}" for name in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if type(value) is Number:
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def count_values(value: Any) -> int:
    """Count what is neither null nor a container."""
    if isinstance(value, dict):
        return sum(map(count_values, value.values()))
    if isinstance(value, list):
        return sum(map(count_values, value))
    return int(value is not None)


def has_value(value: Any) -> bool:
    """Return whether a value is something else than null, or than objects full of nulls."""
    if type(value) is dict:
        return any(map(has_value, value.values()))
    return value is not None


def _number(lexeme: str) -> Number:
    if isinf(float(lexeme)):
        raise UnusableRecord(f"The number {printable(lexeme, 40)} in it is too large.")
    return Number(lexeme)


def _integer(lexeme: str) -> int | Number:
    if len(lexeme) > LONGEST_INTEGER:
        return _number(lexeme)
    return int(lexeme)


def _constant(name: str) -> None:
    raise UnusableRecord(f"It contains {name}, which is not a number.")


# pyarrow.json would need 40 % less CPU, but reads some decimals wrongly without an error
# (docs/decisions.md, "Records are decoded in Python").
decode = msgspec.json.Decoder(dict[str, Any], float_hook=_number).decode
_parse = json.JSONDecoder(
    parse_float=_number,
    parse_int=_integer,
    parse_constant=_constant,
    object_pairs_hook=_object,
    strict=False,
).decode
_parse_members = json.JSONDecoder(
    parse_float=Number, parse_int=Number, object_pairs_hook=list, strict=False
).decode
