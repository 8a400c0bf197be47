"""Returns values of a workbook or a database as texts, which rows reads like those of a file."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

# What names something: two that are one in a float of 15 digits would be mistaken for each other.
NAMES: Final = ("id", "number", "partner")
MOST_EXACT: Final = 10**15


def text_of(role: str, value: Any) -> str | None:
    """Return the value of a role as text. A float has 15 digits, as in Excel: more are made up.

    Raises ValueError for an identifier that is a float of more digits.
    """
    match value:
        case None:
            return None
        case float():
            if role in NAMES and abs(value) >= MOST_EXACT:
                raise ValueError(inexact(role))
            return f"{value:.15g}"
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
    return str(value)


def inexact(role: str) -> str:
    """Return why an identifier that is a float cannot be read."""
    return f"role {role} has numbers of more digits than a float can hold. Write them as text"
