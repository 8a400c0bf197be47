"""Money: currencies with their ISO 4217 minor units, and amounts that are never binary floats.

Here: integers of minor units, their exact text, half-even rounding. Not here: which row costs what.
"""

from dataclasses import dataclass

PRICE_SCALE = 6  # prices are integers of 10^-6 of a currency's major unit
_UNITS = tuple(10**digits for digits in range(PRICE_SCALE + 1))  # minor units in a major one


@dataclass(frozen=True)
class Currency:
    """An ISO 4217 code and the digits of its minor unit."""

    code: str
    digits: int

    @property
    def divisor(self) -> int:
        """Price units (10^-6) in one minor unit."""
        return int(10 ** (PRICE_SCALE - self.digits))


CURRENCIES = (
    Currency("EUR", 2),
    Currency("JPY", 0),
    Currency("USD", 2),
    Currency("KWD", 3),
    Currency("GBP", 2),
)


def half_even(numerator: int, divisor: int) -> int:
    """Divide and round to the nearest integer, ties to the even one."""
    quotient, rest = divmod(numerator, divisor)
    doubled = 2 * rest
    return quotient + (doubled > divisor or (doubled == divisor and quotient % 2))


def text(minor: int, digits: int) -> str:
    """Write an amount of minor units: (1250, 2) is 12.50, and always with decimals: (12, 0) 12.00.

    An amount without a point could not be told from an identifier.
    """
    if minor < 0:
        return f"-{text(-minor, digits)}"
    unit = _UNITS[digits]
    whole, rest = divmod(minor, unit)
    return f"{whole}.{str(unit + rest)[1:]}" if digits else f"{whole}.00"


def price_lexeme(units: int) -> str:
    """Write a price of 10^-6 units without trailing zeros: 12500 is 0.0125."""
    return text(units, PRICE_SCALE).rstrip("0").rstrip(".")
