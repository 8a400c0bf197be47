"""Adds amounts by currency: amounts of two currencies are never added."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Context, Decimal
from itertools import chain
from typing import Any, Final

from pipelines.warehouse.duckdb_file import Row

# Python's default would round a difference of 38 digits to 28.
EXACT: Final = Context(prec=100)


@dataclass(frozen=True)
class Amount:
    """A sum in one currency.

    `amount` is None where none of its parts is known, `number` says how many breaks, months of
    partners or bills it adds.
    """

    currency: str | None
    amount: Decimal | None
    number: int

    def plus(self, amount: Decimal | None, number: int) -> "Amount":
        """Return the sum with one more part. What is not known adds nothing."""
        if amount is None:
            total = self.amount
        elif self.amount is None:
            total = amount
        else:
            total = EXACT.add(self.amount, amount)
        return Amount(self.currency, total, self.number + number)


Sums = dict[str | None, Amount]
SignedSums = dict[str | None, list[Amount]]


def add_up(rows: Iterable[Row], order: Iterable[str | None], number: str = "") -> Sums:
    """Add the differences of rows by currency; `number` is the column that counts, if any.

    Currencies without a row are left out. Those of `order` come first.
    """
    sums: Sums = {}
    for row in rows:
        currency = row["currency"]
        before = sums.get(currency, Amount(currency, None, 0))
        sums[currency] = before.plus(row["difference"], row[number] if number else 1)
    in_order = {currency: sums.pop(currency) for currency in order if currency in sums}
    return in_order | sums


def add_up_by_sign(rows: Iterable[Row], order: Sequence[str | None]) -> SignedSums:
    """Add what is above zero, what is below, and what is not known apart: none hides another."""
    above = list[Row]()
    below = list[Row]()
    unknown = list[Row]()
    for row in rows:
        if row["difference"] is None:
            unknown.append(row)
        elif row["difference"]:
            (above if row["difference"] > 0 else below).append(row)
    groups = [add_up(group, order) for group in (above, below, unknown)]
    signed: SignedSums = {}
    for currency in dict.fromkeys(chain(order, *groups)):
        parts = [sums[currency] for sums in groups if currency in sums]
        if parts:
            signed[currency] = parts
    return signed


def sums_as_json(sums: Sums) -> list[dict[str, Any]]:
    """Return sums as `report --json` has them."""
    return [asdict(amount) for amount in sums.values()]
