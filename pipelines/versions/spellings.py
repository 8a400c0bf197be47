"""Recognizes other spellings of a value. They are hints for a person; `erase` does not erase them.

Here: letter case, spaces, composed letters, names of fields, longer texts. Not here: what is the
value itself, also as an equal number or inside JSON text (`identifier`).
"""

import json
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

# Letter case, spaces and composed letters are hints only: `Ada` and `ADA` may be two people.
SHORTEST_PART: Final = 4  # characters: shorter values are in longer texts by chance


class Spelling(StrEnum):
    """How a text differs from a value, the nearest first."""

    COMPOSED = "composed letters"
    CASE = "letter case"
    SPACES = "spaces"
    SEVERAL = "letter case, spaces or composed letters together"
    NAME = "name of a field"
    WITHIN = "within a longer text"


def parse_json_text(text: str) -> Any:
    """Return the object or list that a text spells, numbers as text; None for any other text."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None


def unescape(text: str) -> str:
    """Return what a text means where it is escaped as in JSON; any other text as it is."""
    try:
        return str(json.loads(f'"{text}"')) if "\\" in text else text
    except ValueError:
        return text


def without_case_and_spaces(text: str) -> str:
    """Return a text without letter case and spaces, its letters composed."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield every text in a value, and whether it is the name of a field."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name, True
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and type(value) is not bool:
        text = unescape(str(value))
        yield text, False
        yield from _texts(parse_json_text(text))


class OtherSpellings:
    """Finds other spellings of one value in records."""

    def __init__(self, value: str) -> None:
        self._value = value
        self._plain = without_case_and_spaces(value)

    def is_possible(self, raw: bytes) -> bool:
        """Return whether a raw record may have another spelling: most have none, and cost less."""
        if not self._plain:
            return False
        if b"\\" in raw:  # which may hide any letter
            return True
        return self._plain in without_case_and_spaces(raw.decode("utf-8", "replace"))

    def nearest(self, record: Any) -> tuple[Spelling, str] | None:
        """Return the nearest other spelling in a record, and the text that has it."""
        examples = dict[Spelling, str]()  # the first of each
        for text, is_name in _texts(record):
            spelling = self._compare(text, is_name=is_name)
            if spelling is not None:
                examples.setdefault(spelling, text)
        for spelling in Spelling:  # the nearest first
            if spelling in examples:
                return spelling, examples[spelling]
        return None

    def _compare(self, text: str, *, is_name: bool) -> Spelling | None:
        """Return how a text spells the value otherwise; None where it does not."""
        plain = without_case_and_spaces(text)
        if plain == self._plain:
            return Spelling.NAME if is_name else self._difference(text)
        is_part = len(self._plain) >= SHORTEST_PART and self._plain in plain
        return Spelling.WITHIN if is_part and not is_name else None

    def _difference(self, text: str) -> Spelling | None:
        value = self._value
        if text == value:
            return None
        if unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", value):
            return Spelling.COMPOSED
        if text.casefold() == value.casefold():
            return Spelling.CASE
        if "".join(text.split()) == "".join(value.split()):
            return Spelling.SPACES
        return Spelling.SEVERAL
