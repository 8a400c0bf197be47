"""A charge: quantity, price and amount of one usage row, alike in usage and in billing.

Here: the arithmetic that both records share, so that clean data reconciles to the last digit.
Ordinary amounts are log-normal around the level of their partner and month; awkward ones have up
to 18 digits. Not here: the rest of either record.
"""

from collections.abc import Callable
from functools import cache
from math import exp
from statistics import NormalDist
from typing import NamedTuple

from sandbox.data.calendar import EPOCH
from sandbox.data.digest import source
from sandbox.data.group import Group
from sandbox.data.money import CURRENCIES, Currency, half_even, price_lexeme
from sandbox.data.plan import ORDINARY_PLANS, PLANS, SETTLEMENT_PLAN

BIG_EVERY = 997  # about one row in 1,000 has an amount of 18 significant digits
BIG_ROW = 41
SMALLEST_BIG = 10**17

MEDIAN = 80  # of ordinary amounts at the epoch, in a currency's major unit
LEAST, MOST = 10**6, 20_000 * 10**6  # of ordinary amounts before restatements, in price units
TREND = 10  # per mille of the epoch's level, added each month
SEASONS = (95, 95, 100, 100, 100, 100, 90, 90, 100, 115, 120, 130)  # percent, January first


def _log_normal(sigma: float) -> tuple[int, ...]:
    """Give 256 factors in per mille, as likely as each other."""
    normal = NormalDist(sigma=sigma)
    return tuple(round(1000 * exp(normal.inv_cdf((step + 0.5) / 256))) for step in range(256))


PARTNER_FACTORS, ROW_FACTORS = _log_normal(0.8), _log_normal(0.5)


class Charge(NamedTuple):
    """One usage row's money: amount in minor units, and the row's bytes of chance."""

    digest: bytes
    plan: int
    quantity: int
    minor: int
    price_factor: int = 1


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


def price_of(charge: Charge) -> str:
    """Give the price of one unit of a charge."""
    if charge.price_factor == 1:
        return PRICES[charge.plan]
    return price_lexeme(PLANS[charge.plan].price * charge.price_factor)


@cache
def _month_factor(prefix: str) -> int:
    """Give the factor of a month, as 2026-11-, in per mille: trend and season."""
    year, month = int(prefix[:4]), int(prefix[5:7])
    passed = 12 * (year - EPOCH.year) + month - EPOCH.month
    return (1000 + TREND * passed) * SEASONS[month - 1] // 100


def _ordinary(digest: bytes, group: Group, price: int) -> int:
    """Give the quantity of an ordinary row."""
    level = PARTNER_FACTORS[group.payer.size] * _month_factor(group.month.prefix)
    amount = MEDIAN * level * ROW_FACTORS[digest[13]] // 1000 * (896 + digest[14]) // 1024
    return -(-min(max(amount, LEAST), MOST) // price)


def overcharged(charge: Charge, currency: Currency) -> Charge:
    """Give the charge as a bill shows it that a credit note corrects: about a tenth too much."""
    price, _most, divisor, step = TERMS[currency.code][charge.plan]
    quantity = charge.quantity * 11 // 10 + step
    return charge._replace(quantity=quantity, minor=half_even(quantity * price, divisor))


def charges(seed: int, *, awkward: bool = False) -> Callable[[int, Group], Charge]:
    """Give the function from a usage row's index and its group to its charge."""
    chance = source(seed, "usage")

    def charge(index: int, group: Group) -> Charge:
        digest = chance(index)
        currency = group.payer.currency
        big = awkward and index % BIG_EVERY == BIG_ROW
        plan = SETTLEMENT_PLAN[currency.digits] if big else digest[12] % ORDINARY_PLANS
        price, most, divisor, step = TERMS[currency.code][plan]
        if big:
            quantity = SMALLEST_BIG + int.from_bytes(digest[13:20]) * 11 + 1
        elif not awkward:
            quantity = _ordinary(digest, group, price)
        else:
            quantity = (most * (digest[13] << 8 | digest[14]) >> 16) + 1
        if group.version:
            quantity += group.version * step * (digest[15] % 3 + 1)
        factor = group.price_factor
        minor = half_even(quantity * price * factor, divisor)
        return Charge(digest, plan, quantity, minor, factor)

    return charge
