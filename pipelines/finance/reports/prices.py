"""Prices that are not those of the last month before: all that are material, and which are shown.

No price list is known: a price is what a partner's month has of one plan and metric, its amount
divided by its quantity. A month without a quantity has no price: the last one before counts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any, Final

from pipelines.finance.currencies import digits_of, minor_unit
from pipelines.finance.reports.amounts import (
    EXACT,
    SignedSums,
    Sums,
    add_up,
    add_up_by_sign,
    sums_as_json,
)
from pipelines.warehouse.duckdb_file import Row

SHOWN: Final = 10
GROUPS: Final = 3  # months of partners, as questions
MONTHS: Final = 3  # of which the summary shows changes
DIGITS: Final = 6  # of a price
SIDES: Final = {"usage": "used", "billing": "billed", "both": "used and billed"}


@dataclass(frozen=True)
class PriceChange:
    """A price that changed since `month_before`.

    `effect` is the amount minus what its quantity costs at the price before. `others` is the price
    of all other partners together in the same month, None without any. `place` counts the months,
    the newest first.
    """

    month: date
    month_before: date
    place: int
    connection: str
    partner: str | None
    name: str | None
    currency: str | None
    plan: str | None
    metric: str | None
    region: str | None
    unit: str | None
    side: str
    quantity: Decimal
    amount: Decimal
    before: Decimal
    now: Decimal
    others: Decimal | None
    effect: Decimal

    @property
    def item(self) -> str:
        """The plan and metric, as far as they are mapped."""
        return ", ".join(filter(None, (self.plan, self.metric, self.region, self.unit)))

    def as_json(self) -> Row:
        """Return it for `report --json`."""
        return {
            "month": f"{self.month:%Y-%m}",
            "month_before": f"{self.month_before:%Y-%m}",
            "connection": self.connection,
            "partner": self.name or self.partner,
            "partner_id": self.partner,
            "currency": self.currency,
            "side": self.side,
            "item": self.item,
            "price_before": self.before,
            "price": self.now,
            "price_of_others": self.others,
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
class PriceQuestion:
    """The prices of a partner's month that changed, of which somebody should know why."""

    first: PriceChange
    number: int
    effect: SignedSums


@dataclass(frozen=True)
class Prices:
    """All material changes of prices, those that are shown, and what the others add up to.

    `changes` are of the twelve newest months whose bills are due, the largest first; all others
    are of `months`, the newest of these.
    """

    changes: tuple[PriceChange, ...] = ()
    months: tuple[date, ...] = ()
    shown: tuple[PriceChange, ...] = ()
    others: tuple[OtherPrices, ...] = ()
    questions: tuple[PriceQuestion, ...] = ()
    other_questions: int = 0

    def partners(self, months: Collection[date | None]) -> int:
        """Return how many partners have a price that changed in one of some months."""
        return len({(row.connection, row.partner) for row in self.changes if row.month in months})

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`."""
        return {
            "months": [f"{month:%Y-%m}" for month in self.months],
            "shown": [change.as_json() for change in self.shown],
            "others": [other.as_json() for other in self.others],
        }


def read_prices(rows: Iterable[Row]) -> tuple[PriceChange, ...]:
    """Return the material changes of prices, of the rows of query `price_changes`."""
    changes = []
    for row in rows:
        # What changed alike on both sides is one change, and has a row for each.
        if row["sides"] != "both" or row["side"] == "usage":
            effect = _effect(row)
            if effect and abs(effect) >= row["material"]:
                changes.append(_change(row, effect))
    return tuple(changes)


def judge_prices(rows: Iterable[Row], order: Sequence[str | None], due: Sequence[date]) -> Prices:
    """Return which changes are shown, of the rows of query `price_changes`.

    `due` are the newest months whose bills are due, the newest first.
    """
    changes = read_prices(rows)
    recent = [change for change in changes if change.place < MONTHS]
    others = []
    for side in ("usage", "billing"):
        of_side = [
            _summed(row) for row in recent[SHOWN:] if row.side in (SIDES[side], SIDES["both"])
        ]
        if of_side:
            above = add_up((row for row in of_side if row["difference"] > 0), order)
            below = add_up((row for row in of_side if row["difference"] < 0), order)
            others.append(OtherPrices(SIDES[side], len(of_side), above, below))
    questions = _questions(recent, order)
    return Prices(
        changes=changes,
        months=tuple(due[:MONTHS]),
        shown=tuple(recent[:SHOWN]),
        others=tuple(others),
        questions=tuple(questions[:GROUPS]),
        other_questions=len(questions[GROUPS:]),
    )


def _questions(changes: Iterable[PriceChange], order: Sequence[str | None]) -> list[PriceQuestion]:
    """Return the changes of each partner's month as one question, in the order of the first one."""
    groups: dict[tuple[Any, ...], list[PriceChange]] = {}
    for row in changes:
        key = (row.month, row.connection, row.partner, row.currency, row.side)
        groups.setdefault(key, []).append(row)
    return [
        PriceQuestion(rows[0], len(rows), add_up_by_sign(map(_summed, rows), order))
        for rows in groups.values()
    ]


def _summed(change: PriceChange) -> Row:
    """Return a change as a row whose effect can be added."""
    return {"currency": change.currency, "difference": change.effect}


def _effect(row: Row) -> Decimal:
    """Return the amount minus the quantity at the price before, as part `price` of flux has it."""
    more = EXACT.subtract(row["quantity"], row["quantity_before"])
    volume = EXACT.divide(EXACT.multiply(more, row["amount_before"]), row["quantity_before"])
    volume = volume.quantize(minor_unit(row["currency"]), ROUND_HALF_EVEN, EXACT)
    return EXACT.subtract(EXACT.subtract(row["amount"], row["amount_before"]), volume)


def _change(row: Row, effect: Decimal) -> PriceChange:
    currency = row["currency"]
    has_others = bool(row["others_quantity"]) and row["others_amount"] is not None
    names = (
        "month", "month_before", "place", "connection", "partner", "name", "plan", "metric",
        "region", "unit", "quantity", "amount",
    )  # fmt: skip
    return PriceChange(
        **{name: row[name] for name in names},
        currency=currency,
        side=SIDES[row["sides"]],
        before=price_of(row["amount_before"], row["quantity_before"], currency),
        now=price_of(row["amount"], row["quantity"], currency),
        others=price_of(row["others_amount"], row["others_quantity"], currency)
        if has_others
        else None,
        effect=effect,
    )


def price_of(amount: Decimal, quantity: Decimal, currency: str | None) -> Decimal:
    """Return the price of one unit: six digits, but all that its currency has behind the point."""
    price = EXACT.divide(amount, quantity)
    behind = max(DIGITS - 1 - price.adjusted(), digits_of(currency))
    return price.quantize(Decimal(1).scaleb(-behind), ROUND_HALF_UP, EXACT)


def list_prices(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """Return all material changes by column, for the list of the page; amounts are exact texts."""
    columns: dict[str, list[Any]] = {}
    for change in sorted(read_prices(rows), key=lambda change: change.place):
        row = {
            "connection": change.connection,
            "partner": change.name or change.partner or "no partner",
            "partner_id": change.partner,
            "month": f"{change.month:%Y-%m}",
            "month_before": f"{change.month_before:%Y-%m}",
            "currency": change.currency,
            "side": change.side,
            "item": change.item,
            "plan": change.plan,
            "metric": change.metric,
            "region": change.region,
            "unit": change.unit,
            "before": f"{change.before:f}",
            "price": f"{change.now:f}",
            "others": None if change.others is None else f"{change.others:f}",
            "quantity": f"{change.quantity:f}",
            "now": f"{change.amount:f}",
            "effect": f"{change.effect:f}",
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns
