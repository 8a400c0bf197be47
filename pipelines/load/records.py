"""Reads one raw record exactly, every number as it is spelled, or says why it is not usable."""

import json
import re
from collections import Counter
from math import isinf
from typing import Any

from pipelines.core.text import printable

DEEPEST = 64  # objects and arrays inside each other, the record itself counted
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Number(str):
    """A JSON number as it is spelled. JSON text of it is a string, so no reader rounds it."""

    __slots__ = ()


class UnusableRecord(Exception):
    """A record that cannot be loaded; the message says why."""


def read_record(raw: bytes) -> dict[str, Any]:
    """Return a record whose numbers are `Number`. Raises UnusableRecord."""
    try:
        record = _STRICT.decode(raw.decode().strip(" \t\r\n"))
        is_deep = raw.count(b"{") + raw.count(b"[") > DEEPEST and _depth(record) > DEEPEST
    except UnicodeDecodeError:
        raise UnusableRecord("It is not UTF-8 text.") from None
    except RecursionError:
        is_deep, record = True, {}
    except ValueError as error:
        raise UnusableRecord(f"It is not JSON: {printable(error)}.") from None
    if is_deep:
        raise UnusableRecord(f"It is nested more than {DEEPEST} levels deep.")
    if not isinstance(record, dict):
        raise UnusableRecord("It is not an object.")
    if _SURROGATE.search(raw):
        _check_text(record)
    return record


def read_key(raw: bytes, name: str) -> str | None:
    """Return the key of a record that is not usable; None where nobody can tell it."""
    try:
        pairs = _LENIENT.decode(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, _Members):
        return None
    values = [value for member, value in pairs if member == name]
    return key_text(values[0]) if len(values) == 1 else None


def key_text(value: Any) -> str | None:
    """Return the text that identifies a record; None where the value identifies nothing.

    A number is written plainly: 1, 1.0 and 1e0 are the same key.
    """
    if isinstance(value, Number):
        return _plain_number(value)
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _plain_number(number: Number) -> str | None:
    digits, _, exponent = number.lower().partition("e")
    if len(exponent) > 4:  # noqa: PLR2004 - beyond any number that can be stored
        return None
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    shift = len(whole) + int(exponent or 0)
    digits = whole + fraction
    whole = digits[: max(shift, 0)].ljust(max(shift, 0), "0").lstrip("0") or "0"
    fraction = (("0" * -shift + digits) if shift < 0 else digits[shift:]).rstrip("0")
    plain = f"{whole}.{fraction}" if fraction else whole
    return plain if plain == "0" else sign + plain


def _check_text(record: dict[str, Any]) -> None:
    """Refuse halves of surrogate pairs, which UTF-8 cannot hold."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnusableRecord("A text in it holds half of a surrogate pair.") from None


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    inner = [_depth(part) for part in parts]
    return 1 + max(inner, default=0) if isinstance(value, dict | list) else 0


def _number(lexeme: str) -> Number:
    if isinf(float(lexeme)):
        raise UnusableRecord(f"The number {printable(lexeme, 40)} in it is too large.")
    return Number(lexeme)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(members)
    if len(record) < len(members):
        names = [name for name, _ in members]
        twice = Counter(names).most_common(1)[0][0]
        raise UnusableRecord(f"The field `{printable(twice, 80)}` is in it twice.")
    return record


def _constant(name: str) -> Any:
    raise UnusableRecord(f"It contains {name}, which is not a number.")


class _Members(list[tuple[str, Any]]):
    """The members of an object, repeated ones too."""


_STRICT = json.JSONDecoder(
    parse_float=_number, parse_int=_number, parse_constant=_constant, object_pairs_hook=_unique
)
_LENIENT = json.JSONDecoder(
    parse_float=Number, parse_int=Number, object_pairs_hook=_Members, strict=False
)
