"""The scale of a chart: round amounts, and which bars are cut as they are far too long."""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Final, NamedTuple

from pipelines.finance.reports.text import format_amount
from pipelines.warehouse.duckdb_file import Row

ROUND: Final = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
UNITS: Final = ((10**12, " tn"), (10**9, " bn"), (10**6, " m"), (10**3, " k"), (1, ""))
# The bars of a month are cut if it is so many times as large as every other one.
TOO_LARGE: Final = 10
LONGEST: Final = 14  # letters of an amount beside a bar
BRIEF: Final = Context(prec=3)


class Axis(NamedTuple):
    """The amounts of a chart, from `low` to `high`; a text for each round one, which has a line.

    Bars of larger amounts than `whole`, up or down, are cut; None: none is.
    """

    low: Decimal
    high: Decimal
    ticks: dict[Decimal, str]
    whole: Decimal | None = None

    def clip(self, amount: Decimal) -> Decimal:
        """Return how long the bar of an amount is."""
        return min(max(amount, self.low), self.high)

    def is_cut(self, amount: Decimal) -> bool:
        """Return whether the bar of an amount is cut."""
        return self.whole is not None and amount.copy_abs() > self.whole

    def gap(self, amount: Decimal) -> Decimal:
        """Return where the gap of a bar that is cut ends: between the whole bars and its end."""
        return (self.high if amount > 0 else self.low) * Decimal("0.75")


def scale_of(rows: Sequence[Row], names: Sequence[str], steps: int) -> Axis:
    """Return the axis of the bars of months. Where one month is far too large, it is cut.

    Bars that are cut are twice as long as the largest that is not: nobody takes them for whole.
    """
    amounts: list[Decimal] = []
    sizes: list[Decimal] = []
    for row in rows:
        of_month = [row[name] for name in names]
        amounts += of_month
        sizes.append(max(amount.copy_abs() for amount in of_month))
    # The largest month, and the largest of the others, which none of their bars exceeds.
    sizes.sort(reverse=True)
    whole = sizes[1] if len(sizes) > 1 else Decimal(0)
    if not whole or sizes[0] < TOO_LARGE * whole:
        return axis_of(amounts, steps)
    axis = axis_of([amount for amount in amounts if amount.copy_abs() <= whole], steps)
    low = -2 * whole if min(amounts) < -whole else axis.low
    high = 2 * whole if max(amounts) > whole else axis.high
    return Axis(low, high, axis.ticks, whole)


def brief(amount: Decimal, currency: str | None, *, signed: bool = False) -> str:
    """Return an amount as it stands beside a bar: exact where that is short."""
    exact = format_amount(amount, currency, signed=signed)
    return exact if len(exact) <= LONGEST else _shorten(BRIEF.plus(amount))


def axis_of(amounts: Sequence[Decimal], steps: int) -> Axis:
    """Return an axis with zero and every amount on it, of at most so many steps."""
    low = min(Decimal(0), *amounts)
    high = max(Decimal(0), *amounts)
    span = (high - low) or Decimal(steps)
    step = _step(span, steps)
    if high == low:
        high = step
    ticks = {}
    for number in range(int(low / step), int(high / step) + 1):
        ticks[number * step] = _shorten(number * step)
    return Axis(low, high, ticks)


def _step(span: Decimal, steps: int) -> Decimal:
    """Return the smallest round amount of which at most so many make a span."""
    power = Decimal(1).scaleb((span / steps).adjusted())
    for factor in ROUND:
        if factor * power * steps >= span:
            return factor * power
    return ROUND[-1] * power


def _shorten(amount: Decimal) -> str:
    """Return a round amount in few letters: 2.5 m."""
    fitting = [scale for scale in UNITS if abs(amount) >= scale[0]]
    size, unit = fitting[0] if fitting else UNITS[-1]
    return f"{(amount / size).normalize():,f}{unit}".replace("-", "\u2212")
