"""The vertical axis of a chart: where it begins and ends, and its lines at round amounts."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

STEPS: Final = 4  # between the lowest and the highest amount, at most
ROUND: Final = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
UNITS: Final = ((10**12, " tn"), (10**9, " bn"), (10**6, " m"), (10**3, " k"), (1, ""))


class Axis(NamedTuple):
    """Amounts from `low` to `high`, and a text for each that has a line."""

    low: Decimal
    high: Decimal
    ticks: dict[Decimal, str]


def axis_of(amounts: Sequence[Decimal]) -> Axis:
    """Return an axis with zero and every amount on it."""
    low, high = min(Decimal(0), *amounts), max(Decimal(0), *amounts)
    span = (high - low) or Decimal(STEPS)
    power = Decimal(1).scaleb((span / STEPS).adjusted())
    step = next(each * power for each in ROUND if each * power * STEPS >= span)
    high = high if high > low else step
    lines = [number * step for number in range(int(low / step), int(high / step) + 1)]
    return Axis(low, high, {amount: _shorten(amount) for amount in lines})


def _shorten(amount: Decimal) -> str:
    """Return a round amount in few letters: 2.5 m."""
    size, unit = next((each for each in UNITS if abs(amount) >= each[0]), UNITS[-1])
    return f"{(amount / size).normalize():,f}{unit}".replace("-", "\u2212")
