"""Paths of values in records: how people and settings write them, and how columns are named.

Here: paths as text and as names. Not here: what is at a path (`place.py`, `schema.py`).
"""

import re
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

FieldPath: TypeAlias = tuple[str | None, ...]
"""Names of members from the record inwards; None stands for the items of a list.

A map, an object whose names are data, is stored as a list of items with a name and a value.
"""
# Columns of a row of a map. No column of data begins with _, so the name tells a map.
MAP_NAME: Final = "_name"
MAP_VALUE: Final = "value"
# Characters of a column, without a number and an ending.
LONGEST_NAME: Final = 50
# Endings of the columns that one place may have.
ENDINGS: Final = ("", "__offset", "__count")
# A column of this name would hide the numbers that DuckDB gives to rows, by which rows are written
# again: amounts of other rows were put into them.
TAKEN: Final = "rowid"
# Between the words of `unitPrice`, and of `HTTPStatus`.
BETWEEN_WORDS: Final = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


def steps_to_row(path: FieldPath) -> int:
    """Return how many steps of a path lead to its row in a table: those up to the last list."""
    for end in range(len(path), 0, -1):
        if path[end - 1] is None:
            return end
    return 0


def json_path(path: FieldPath) -> str:
    """Return a path for people: `$.lines[*].unitPrice`."""
    return "$" + "".join("[*]" if step is None else f".{step}" for step in path)


def field_of(path: FieldPath) -> str:
    """Return a path as settings and mappings name a field: `lines[].unitPrice`."""
    return json_path(path).removeprefix("$").replace("[*]", "[]").removeprefix(".")


def plain_name(path: FieldPath) -> str:
    """Return the names since the last list as one: `unitPrice` becomes `unit_price`."""
    names = []
    for step in path[steps_to_row(path) :]:
        separated = re.sub(BETWEEN_WORDS, "_", str(step))
        name = re.sub(r"\W", "_", separated).lower().strip("_")
        names.append(name or "unnamed")
    return "__".join(names)


def free_name(plain: str, taken: AbstractSet[str]) -> str:
    """Return a name that is not taken, nor with any ending."""
    shortened = plain[:LONGEST_NAME]
    name = shortened
    number = 1
    while not taken.isdisjoint(name + ending for ending in ENDINGS):
        number += 1
        name = f"{shortened}_{number}"
    return name
