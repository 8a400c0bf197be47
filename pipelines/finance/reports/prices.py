"""Prices that are not those of the month before: the largest, and what all others add up to.

No price list is known: a price is what a partner's month has of one plan and metric, its amount
divided by its quantity. Not here: the effect of a price (`flux_items.sql` of reconciliation).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from pipelines.finance.currencies import digits_of
from pipelines.finance.reports.amounts import EXACT, Sums, add_up, sums_as_json
from pipelines.warehouse.duckdb_file import Row

SHOWN: Final = 6
DIGITS: Final = 6  # of a price
SIDES: Final = {"usage": "used", "billing": "billed", "both": "used and billed"}


@dataclass(frozen=True)
class PriceChange:
    """A price that changed; `effect` is what that makes of the month's amount."""

    month: date
    connection: str
    partner: str | None
    name: str | None
    currency: str | None
    side: str
    item: str
    before: Decimal
    now: Decimal
    effect: Decimal

    @property
    def find_side(self) -> str:
        """The side in whose changes the effect is shown."""
        return self.side.partition(" ")[0]

    def as_json(self) -> Row:
        """Return it for `report --json`."""
        return {
            "month": f"{self.month:%Y-%m}",
            "connection": self.connection,
            "partner": self.name or self.partner,
            "partner_id": self.partner,
            "currency": self.currency,
            "side": self.side,
            "item": self.item,
            "price_before": self.before,
            "price": self.now,
            "effect": self.effect,
        }


@dataclass(frozen=True)
class OtherPrices:
    """Changes of a side (used, billed) that are not shown: what is above zero, and below."""

    side: str
    number: int
    above: Sums
    below: Sums

    def as_json(self) -> Row:
        """Return it for `report --json`."""
        return {
            "side": self.side,
            "number": self.number,
            "above": sums_as_json(self.above),
            "below": sums_as_json(self.below),
        }


@dataclass(frozen=True)
class Prices:
    """The largest changes of prices, and all others."""

    shown: tuple[PriceChange, ...]
    others: tuple[OtherPrices, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`."""
        return {
            "shown": [change.as_json() for change in self.shown],
            "others": [other.as_json() for other in self.others],
        }


def judge_prices(rows: Sequence[Row], order: Sequence[str | None]) -> Prices:
    """Return which changes are shown, of the rows of query `price_changes`."""
    # What changed alike on both sides is one change, and has a row for each.
    material = [row for row in rows if row["is_material"]]
    first = [row for row in material if row["sides"] != "both" or row["side"] == "usage"]
    shown = first[:SHOWN]
    keys = {_key(row) for row in shown}
    left_out = [row for row in rows if _key(row) not in keys]
    others = []
    for side in ("usage", "billing"):
        of_side = [{**row, "difference": row["effect"]} for row in left_out if row["side"] == side]
        if of_side:
            above = add_up((row for row in of_side if row["effect"] > 0), order)
            below = add_up((row for row in of_side if row["effect"] < 0), order)
            others.append(OtherPrices(SIDES[side], len(of_side), above, below))
    return Prices(tuple(map(_change, shown)), tuple(others))


def _key(row: Row) -> tuple[Any, ...]:
    """Return what tells a change from others; of what changed alike, one for both sides."""
    names = ("month", "connection", "partner", "currency", "plan", "metric", "unit", "region")
    return (row["sides"], *(row[name] for name in names))


def _change(row: Row) -> PriceChange:
    currency = row["currency"]
    names = (row["plan"], row["metric"], row["region"], row["unit"])
    return PriceChange(
        month=row["month"],
        connection=row["connection"],
        partner=row["partner"],
        name=row["name"],
        currency=currency,
        side=SIDES[row["sides"]],
        item=", ".join(filter(None, names)),
        before=price_of(row["amount_before"], row["quantity_before"], currency),
        now=price_of(row["amount"], row["quantity"], currency),
        effect=row["effect"],
    )


def price_of(amount: Decimal, quantity: Decimal, currency: str | None) -> Decimal:
    """Return the price of one unit: six digits, but all that its currency has behind the point."""
    price = EXACT.divide(amount, quantity)
    behind = max(DIGITS - 1 - price.adjusted(), digits_of(currency))
    return price.quantize(Decimal(1).scaleb(-behind), ROUND_HALF_UP, EXACT)
