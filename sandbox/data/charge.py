"""A charge: quantity, price and amount of one usage row, alike in usage and in billing.

Here: the arithmetic that both records share, so that clean data reconciles to the last digit.
Not here: the rest of either record.
"""

from collections.abc import Callable
from typing import NamedTuple

from sandbox.data.digest import source
from sandbox.data.group import Group
from sandbox.data.money import CURRENCIES, Currency, half_even, price_lexeme
from sandbox.data.plan import ORDINARY_PLANS, PLANS, SETTLEMENT_PLAN

BIG_EVERY = 997  # about one row in 1,000 has an amount of 18 significant digits
BIG_ROW = 41
SMALLEST_BIG = 10**17


class Charge(NamedTuple):
    """One usage row's money: amount in minor units, and the row's bytes of chance."""

    digest: bytes
    plan: int
    quantity: int
    minor: int


class _Terms(NamedTuple):
    price: int
    most: int
    divisor: int
    step: int


def _terms(plan: int, currency: Currency) -> _Terms:
    # A restatement adds at least two minor units: the amount changes whatever half-even does.
    price = PLANS[plan].price
    return _Terms(price, PLANS[plan].most, currency.divisor, -(-2 * currency.divisor // price))


TERMS = {
    currency.code: tuple(_terms(plan, currency) for plan in range(len(PLANS)))
    for currency in CURRENCIES
}
PRICES = tuple(price_lexeme(plan.price) for plan in PLANS)


def charges(seed: int) -> Callable[[int, Group], Charge]:
    """Give the function from a usage row's index and its group to its charge."""
    chance = source(seed, "usage")

    def charge(index: int, group: Group) -> Charge:
        digest = chance(index)
        currency = group.payer.currency
        big = index % BIG_EVERY == BIG_ROW
        plan = SETTLEMENT_PLAN[currency.digits] if big else digest[12] % ORDINARY_PLANS
        price, most, divisor, step = TERMS[currency.code][plan]
        if big:
            quantity = SMALLEST_BIG + int.from_bytes(digest[13:20]) * 11 + 1
        else:
            quantity = (most * (digest[13] << 8 | digest[14]) >> 16) + 1
        if group.version:
            quantity += group.version * step * (digest[15] % 3 + 1)
        return Charge(digest, plan, quantity, half_even(quantity * price, divisor))

    return charge
