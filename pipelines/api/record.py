"""One record as its JSON text: read to the last digit, or the reason why it cannot be landed.

Here: what JSON readers let through and no table can hold, with the path of the field that is to
blame. Not here: finding the records of a page (items).
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isinf
from typing import Any

from pipelines.api.items import CLOSER, TOKEN
from pipelines.api.problem import cleaned

DEEPEST = 64  # objects and arrays within each other, the record itself counted
SAFE_DIGITS = 18  # a 64-bit integer always holds them
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Flaw:
    """Why a record cannot be landed: `path` of the field (empty: the record), and what is there.

    `of_key`: its key is sound, but of another kind than those before; a person may let that be.
    """

    path: str
    expected: str
    got: str
    of_key: bool = False

    def __str__(self) -> str:
        return f"{self.path or 'the item'} is {self.got}, expected {self.expected}"


@dataclass(frozen=True)
class _Odd:
    """Stands where a value cannot be read, until its path is known."""

    expected: str
    got: str
    member: str = ""


class _Unreadable(Exception):
    """A value that stops the quick reader."""


def flaw(text: bytes, key: str | None = None) -> Flaw | None:
    """Say why a record cannot be landed under a key; None where it can."""
    found = read(text, key)
    return found if isinstance(found, Flaw) else None


def read(text: bytes, key: str | None = None) -> dict[str, Any] | Flaw:
    """Return a record with every number as it was written (int, else Decimal), or its flaw.

    A flaw is also a missing `key`, or one that is null or no single value.
    """
    if text.count(b"{") + text.count(b"[") > DEEPEST and (deep := _depth(text)):
        return deep
    try:
        written = text.decode()
        value = _QUICK.decode(written)
    except (_Unreadable, ValueError):
        return _why(text)
    if not isinstance(value, dict):
        return Flaw("", "an object", _kind(value))
    if _ESCAPED_SURROGATE.search(written) and (torn := _first_flaw(value, "")):
        return torn
    return (None if key is None else _keyless(value, key)) or value


def identity(text: bytes, key: str) -> str | None:
    """Return the key of a record that may have a flaw, a number as it was written.

    None where it cannot be told; of a key that is there twice, the last.
    """
    try:
        value = json.loads(text.decode(), parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) and _is_text(found) else None


def _keyless(record: dict[str, Any], key: str) -> Flaw | None:
    value = record.get(key)
    if value is None:
        return Flaw(
            cleaned(key), "what identifies the record", "null" if key in record else "missing"
        )
    if isinstance(value, (bool, dict, list)):  # of true and false there are two, not a key
        return Flaw(cleaned(key), "what identifies the record", _kind(value))
    return None


def _why(text: bytes) -> Flaw:
    """Find what stopped the quick reader, and where."""
    try:
        value = _PATIENT.decode(text.decode())
    except ValueError as error:
        return Flaw("", "JSON", f"no JSON ({cleaned(error)})")
    found = _first_flaw(value, "")
    return found or Flaw("", "an object", _kind(value))


def _first_flaw(value: Any, path: str) -> Flaw | None:
    """Walk from the record inwards to the first value that cannot be landed."""
    if isinstance(value, _Odd):
        return Flaw(_below(path, value.member) if value.member else path, value.expected, value.got)
    if isinstance(value, str) and not _is_text(value):
        return Flaw(path, "Unicode text", "half of a surrogate pair")
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        parts = ((_below(path, name), each) for name, each in value.items())
        if torn := next((name for name in value if not _is_text(name)), None):
            return Flaw(_below(path, torn), "Unicode text", "half of a surrogate pair")
    elif isinstance(value, list):
        parts = ((f"{path}[{place}]", each) for place, each in enumerate(value))
    return next((found for part, each in parts if (found := _first_flaw(each, part))), None)


def _below(path: str, name: str) -> str:
    """Return the path of an object's member; foreign names are cut and stripped of what is odd."""
    shown = cleaned(name.encode(errors="replace").decode())
    return f"{path}.{shown}" if path else shown


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a number"


def _depth(text: bytes) -> Flaw | None:
    """Count brackets within brackets without following them; name the member that goes too deep."""
    depth = deepest = 0
    member, last = "", b""
    for token in TOKEN.finditer(text):
        found = token[0]
        if found == b":" and depth == 1:
            member = last.decode(errors="replace")
        depth += (found in CLOSER) - (found in CLOSER.values())
        deepest, last = max(deepest, depth), found
        if depth == DEEPEST + 1:
            path = cleaned(member.strip('"'))
            return Flaw(path, f"at most {DEEPEST} levels", "nested more deeply")
    return None


def _decimal(lexeme: str) -> Decimal:
    """Return a number as it was written; what is beyond a double is beyond everybody."""
    if isinf(float(lexeme)):
        raise _Unreadable
    try:
        return Decimal(lexeme)
    except ArithmeticError:
        raise _Unreadable from None


def _integer(lexeme: str) -> int | Decimal:
    return int(lexeme) if len(lexeme) <= SAFE_DIGITS else _decimal(lexeme)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Unreadable
    return members


def _refused(_name: str) -> Any:
    raise _Unreadable


def _number_or_odd(lexeme: str) -> Decimal | _Odd:
    try:
        return _decimal(lexeme)
    except _Unreadable:
        return _Odd("a number that can be stored", cleaned(lexeme))


def _no_number(name: str) -> _Odd:
    return _Odd("a number", name)


def _members_or_odd(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Odd:
    counts = Counter(name for name, _value in pairs)
    twice = next((name for name, count in counts.items() if count > 1), None)
    return dict(pairs) if twice is None else _Odd("one value", "there twice", twice)


_QUICK = json.JSONDecoder(
    parse_float=_decimal,
    parse_int=_integer,
    parse_constant=_refused,
    object_pairs_hook=_unique,
)
_PATIENT = json.JSONDecoder(
    parse_float=_number_or_odd,
    parse_int=_number_or_odd,
    parse_constant=_no_number,
    object_pairs_hook=_members_or_odd,
)
