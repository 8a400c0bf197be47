"""Places the bars of a chart: used and billed by month. All of it is exact arithmetic.

One unit of the drawing is one pixel, on a phone too: text of 12 px stays 12 px.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pipelines.reports.queries import Row
from pipelines.reports.text import format_amount, format_month

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 270, 170, 62, 8, 148
MONTH_LABELS: Final = 3  # that fit beside each other
HALF_LABEL: Final = 28  # px
STEPS: Final = 4  # between the lowest and the highest amount, at most
ROUND: Final = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
UNITS: Final = ((10**12, " tn"), (10**9, " bn"), (10**6, " m"), (10**3, " k"), (1, ""))
SIDES: Final = {"used": Decimal("0.08"), "billed": Decimal("0.5")}  # and where in its month
TENTH: Final = Decimal("0.1")


@dataclass(frozen=True)
class Scale:
    """Amounts on the vertical axis: from `low` to `high`, a line at every `step`."""

    low: Decimal
    high: Decimal
    step: Decimal

    @classmethod
    def of(cls, amounts: Sequence[Decimal]) -> "Scale":
        """Return a scale with zero and every amount on it, and round numbers at its lines."""
        low, high = min(Decimal(0), *amounts), max(Decimal(0), *amounts)
        span = (high - low) or Decimal(STEPS)
        power = Decimal(1).scaleb((span / STEPS).adjusted())
        step = next(each * power for each in ROUND if each * power * STEPS >= span)
        return cls(low, high if high > low else step, step)

    def y(self, amount: Decimal) -> Decimal:
        """Return where an amount is, in pixels from the top."""
        share = (self.high - amount) / (self.high - self.low)
        return (TOP + share * (BOTTOM - TOP)).quantize(TENTH)

    @property
    def ticks(self) -> list[dict[str, Any]]:
        """The lines, and their numbers."""
        first, last = int(self.low / self.step), int(self.high / self.step)
        amounts = [number * self.step for number in range(first, last + 1)]
        return [{"y": self.y(amount), "text": shorten(amount)} for amount in amounts]


def place_bars(currency: str | None, months: Sequence[Row]) -> dict[str, Any]:
    """Return what the drawing `chart.svg` shows, for one month or more."""
    scale = Scale.of([each[side] for each in months for side in SIDES])
    slot, every = Decimal(WIDTH - LEFT) / len(months), -(-len(months) // MONTH_LABELS)
    zero, bars, labels = scale.y(Decimal(0)), [], []
    for number, month in enumerate(months):
        x, text = LEFT + slot * number, format_month(month["month"])
        if number % every == 0:
            middle = min((x + slot * Decimal("0.45")).quantize(TENTH), WIDTH - HALF_LABEL)
            labels.append({"x": middle, "text": text})
        for side, shift in SIDES.items():
            y = scale.y(month[side])
            bars.append(
                {
                    "side": side,
                    "x": (x + slot * shift).quantize(TENTH),
                    "y": min(y, zero),
                    "width": (slot * Decimal("0.38")).quantize(TENTH),
                    "height": abs(y - zero),
                    "title": f"{text}, {side}: {format_amount(month[side], currency)}",
                }
            )
    size = {"width": WIDTH, "height": HEIGHT, "left": LEFT}
    return {"ticks": scale.ticks, "months": labels, "bars": bars, **size}


def shorten(amount: Decimal) -> str:
    """Return a round amount in few letters: 2.5 m."""
    size, unit = next((each for each in UNITS if abs(amount) >= each[0]), UNITS[-1])
    return f"{(amount / size).normalize():,f}{unit}".replace("-", "\u2212")
