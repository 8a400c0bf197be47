"""Amounts, months and times as people read them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from pipelines.finance.currencies import digits_of

# By `side` of `[accounts]` in mapping.toml; None: it has none.
ISSUER: Final = {
    "payable": "The partners bill you, and you pay their bills.",
    "receivable": "You bill the partners, and they pay you.",
    None: "Who issues the bills is not known: mapping.toml has no [accounts].",
}
MAY_CLAIM: Final[dict[str | None, str]] = {
    "payable": "You may claim back what is overbilled, and they may still bill unbilled usage.",
    "receivable": "They may claim back what is overbilled, and you may still bill unbilled usage.",
}
# Causes of breaks whose words need the rule beside them, in words that do not.
CAUSES: Final = {
    "recorded after the last bill": "usage recorded after the last bill",
    "changed after the bill": "usage changed after its bill",
    "total above its lines": "total of the bill above the sum of its lines",
    "total below its lines": "total of the bill below the sum of its lines",
    "lines without usage": "bill lines that name no usage",
}
NEW_VALUE: Final = ", with the new "


def format_cause(cause: str | None) -> str | None:
    """Return the cause of a break as people read it."""
    known, new, value = (cause or "").partition(NEW_VALUE)
    return f"{CAUSES[known]}{new}{value}" if known in CAUSES else cause


def stop_after(name: str) -> str:
    """Return the full stop behind a name that ends a sentence; a name may have one."""
    return "" if name.endswith(".") else "."


def format_amount(value: Decimal | None, currency: str | None, *, signed: bool = False) -> str:
    """Return an exact amount, with the digits of its currency or the more that it has."""
    if value is None:
        return "not known"
    whole, _point, fraction = f"{value.copy_abs():,f}".partition(".")
    fraction = fraction.rstrip("0").ljust(digits_of(currency), "0")
    sign = ""
    if value < 0:
        sign = "\u2212"
    elif signed and value > 0:
        sign = "+"
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def format_month(day: date | None) -> str:
    """Return a month as people write it: Oct 2026."""
    return f"{day:%b} {day.year:04}" if day else "no month"


def format_day(day: date | datetime | None) -> str:
    """Return a day as people write it: 02 Nov 2026."""
    return f"{day:%d} {format_month(day)}" if day else "no day"


def format_time(time: datetime | None) -> str:
    """Return a time in UTC, to the minute."""
    return f"{time.astimezone(UTC):%d %b %Y, %H:%M} UTC" if time else "not known"
