"""Reads raw records exactly, every number as it is spelled, or says why one is not usable."""

import json
from collections.abc import Sequence
from contextlib import suppress
from decimal import MAX_PREC, Context, Decimal, InvalidOperation
from itertools import chain
from math import isinf
from typing import Any

import msgspec
import numpy as np

from pipelines.core.key import key_fields, list_text
from pipelines.core.parse import LARGEST_EXPONENT
from pipelines.core.text import printable

DEEPEST = 64  # objects and arrays inside each other, the record itself counted
LONGEST_INTEGER = 400  # characters that Python converts without a limit
CONTAINERS = frozenset({dict, list})
EXACT = Context(prec=MAX_PREC)  # the default would round at 28 digits
SCALE = 18  # digits behind the point that a column has at most: 20 remain before it
SMALLEST = Decimal((0, (1,), -SCALE))


class Number(str):
    """A JSON number as it is spelled. JSON text of it is a string, so no reader rounds it."""

    __slots__ = ()


class UnusableRecord(Exception):
    """A record that cannot be loaded; the message says why."""


ODD = msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnusableRecord


def read_record(raw: bytes) -> dict[str, Any] | UnusableRecord:
    """Return a record, numbers as `int` or `Number`, or why it is not usable."""
    with suppress(*ODD):
        record = decode(raw)
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
    for first in range(0, len(raws), 100):  # all at once, it would take twice as long
        text = np.frombuffer(b",".join(raws[first : first + 100]), np.uint8)
        before = text[np.flatnonzero(text == ord(":")) - 1]
        if np.any(before <= ord(" ")):
            return -1
        names += int(np.count_nonzero(before == ord('"')))
    return names


def count_members(level: Sequence[Any], deepest: int = DEEPEST) -> int:
    """Return the number of members in values. Raises RecursionError for one that is too deep."""
    members = 0
    for _ in range(deepest):
        objects = [each for each in level if type(each) is dict]
        lists = [each for each in level if type(each) is list]
        members += sum(map(len, objects))
        inner = chain(*map(dict.values, objects), *lists)
        level = [each for each in inner if type(each) in CONTAINERS]
        if not level:
            return members
    raise RecursionError


def _read_strictly(raw: bytes) -> dict[str, Any]:
    """Return a record. Raises UnusableRecord for whatever is odd in it."""
    try:
        record = _parse(raw.decode().strip(" \t\r\n"))
        count_members([record])
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise UnusableRecord("It is not UTF-8 text.") from None
    except UnicodeEncodeError:  # UTF-8 cannot hold it
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
    found = dict(members)
    if len(found) < len(members):
        twice = max(found, key=[name for name, _ in members].count)
        raise UnusableRecord(f"The field `{printable(twice, 80)}` is in it twice.")
    return found


def read_key(raw: bytes, name: str) -> str | None:
    """Return the key of a record that is not usable; None where nobody can tell it."""
    try:
        members = _parse_members(raw.decode(errors="replace"))
        is_object = raw.lstrip().startswith(b"{")  # an array is a list as well
        fields = key_fields(name)
        values = [each for each in members if each[0] in fields] if is_object else []
        key = record_key(dict(values), fields) if len(values) == len(fields) else None
        return key and key.encode().decode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return None


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
    if len(texts) > 1:
        return list_text(texts)
    return texts[0] if texts else None


def key_text(value: Any) -> str | None:
    """Return a key as text; None where the value identifies nothing.

    A number is written plainly: 1, 1.0 and 1e0 are the same key.
    """
    if type(value) in {str, int}:
        return str(value)
    number = to_decimal(value) if isinstance(value, Number) else None
    return None if number is None else f"{shortest(number) or Decimal(0):f}"


def to_decimal(number: int | str) -> Decimal | None:
    """Return a number exactly; None where its exponent is beyond any that is stored."""
    try:
        decimal = Decimal(number)
    except InvalidOperation:
        return None
    return decimal if abs(decimal.adjusted()) <= LARGEST_EXPONENT else None


def shortest(number: Decimal) -> Decimal:
    """Return a number without zeros at its end."""
    return number.normalize(EXACT)


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
    whole = plain.removeprefix("-").lstrip("0")
    return f"{sign}{whole}" if whole[:1].isdigit() else f"{sign}0{whole}"


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
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(count_values, inner)) if isinstance(value, dict | list) else value is not None


def _number(lexeme: str) -> Number:
    if isinf(float(lexeme)):
        raise UnusableRecord(f"The number {printable(lexeme, 40)} in it is too large.")
    return Number(lexeme)


def _integer(lexeme: str) -> int | Number:
    return int(lexeme) if len(lexeme) <= LONGEST_INTEGER else _number(lexeme)


def _constant(name: str) -> None:
    raise UnusableRecord(f"It contains {name}, which is not a number.")


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
