"""Returns values of a workbook or a database as texts, which rows reads like those of a file."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any


def text_of(value: Any) -> str | None:
    """Return a value as text. A float has 15 digits, as in Excel: more would be made up."""
    match value:
        case None:
            return None
        case float():
            return f"{value:.15g}"
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
    return str(value)
