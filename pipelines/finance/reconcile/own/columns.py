"""Finds the columns of roles among the headings of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipelines.core.text import printable
from pipelines.finance.reconcile.own.not_read import NotRead

MOST_NAMED: Final = 12  # columns, in an error


def places_of(file: Path, headings: Sequence[str], columns: dict[str, str]) -> dict[str, int]:
    """Return the place of the column of each role. Raises NotRead unless each is there once."""
    places = {}
    for role, column in columns.items():
        named = f"{printable(column, 40)} (role {role})"
        times = headings.count(column)
        if times == 0:
            known = ", ".join(printable(name, 40) for name in headings[:MOST_NAMED])
            raise NotRead(f"{file.name} has no column {named}. Its columns: {known}")
        if times > 1:
            raise NotRead(f"{file.name} has {times} columns {named}: nobody knows which one counts")
        places[role] = headings.index(column)
    return places
