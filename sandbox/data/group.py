"""A billing group: the contiguous usage rows that one billing record covers.

Here: what a group's rows share, namely partner, organizations, currency, month and version.
Not here: the rows (usage), the record (billing), how many groups there are (sizes).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from sandbox.data.calendar import (
    Month,
    grown_on,
    month_of,
    months_before_epoch,
    restatements,
)
from sandbox.data.digest import ID_SIZE, identifier, source
from sandbox.data.money import CURRENCIES, Currency
from sandbox.data.organization import ORGANIZATIONS_PER_PARTNER
from sandbox.data.sizes import Sizes

LONGEST_HISTORY = 12  # months before the epoch; more records a partner share a month


@dataclass(frozen=True, slots=True)
class Payer:
    """A partner as its usage and billing show it. ``size``: 0 to 255, how much it uses."""

    partner_id: str
    organization_ids: tuple[str, ...]
    currency: Currency
    size: int


@dataclass(frozen=True, slots=True)
class Group:
    """What the usage rows and the billing record of one group share.

    ``day`` is the day of month of every row where a growth day made the group; 0 where the rows
    spread over the month. ``updated`` is the day of the last restatement, empty if there was none.
    Prices are ``price_factor`` times those of the plans.
    """

    index: int
    rows: range
    payer: Payer
    month: Month
    day: int
    version: int
    updated: str
    price_factor: int = 1


@dataclass(frozen=True)
class Groups:
    """All groups as of today: ``at(g)`` is the g-th, ``of_row(i)`` the one of usage row i."""

    at: Callable[[int], Group]
    of_row: Callable[[int], Group]


def payers(seed: int) -> Callable[[int], Payer]:
    """Give the function from a partner's index to its payer."""
    partner, organization = source(seed, "partners"), source(seed, "organizations")

    @lru_cache(maxsize=4096)
    def payer(index: int) -> Payer:
        first = index * ORGANIZATIONS_PER_PARTNER
        owned = range(first, first + ORGANIZATIONS_PER_PARTNER)
        digest = partner(index)
        return Payer(
            identifier(digest),
            tuple(identifier(organization(one)) for one in owned),
            CURRENCIES[index % len(CURRENCIES)],
            digest[ID_SIZE],
        )

    return payer


def groups_of(seed: int, sizes: Sizes) -> Groups:
    """Give the groups as of today."""
    payer, chance = payers(seed), source(seed, "groups")
    history = -(-sizes.base.groups // sizes.partners) if sizes.partners else 0
    months = min(history, LONGEST_HISTORY)

    def born_in(index: int, born: int) -> date:
        if born:
            return grown_on(born)
        return months_before_epoch(months - index // sizes.partners * months // history)

    @lru_cache(maxsize=1024)
    def group(index: int) -> Group:
        born = sizes.born(index)
        day = born_in(index, born)
        restated = restatements(int.from_bytes(chance(index)), born, sizes.days)
        return Group(
            index=index,
            rows=sizes.rows_of(index),
            payer=payer(index % sizes.partners_on(born)),
            month=month_of(day),
            day=day.day if born else 0,
            version=restated.count,
            updated=grown_on(restated.last_day).isoformat() if restated.count else "",
        )

    return Groups(group, lambda row: group(sizes.group_of(row)))
