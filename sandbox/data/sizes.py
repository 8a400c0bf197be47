"""How many records each list has, and which billing group each usage row belongs to.

Here: sizes at the epoch, their growth by day, the even spread of usage rows over billing groups.
Not here: what a record contains. Everything is arithmetic, O(1) at any size and on any day.
"""

from dataclasses import dataclass
from functools import cached_property

from sandbox.data.calendar import daily_growth

PARTNER_DAYS = 7  # a new partner is rare: one a week
ROWS_PER_UNBILLED_GROUP = 10  # groups still give partner and month where there is no billing at all


@dataclass(frozen=True)
class Spread:
    """``rows`` spread evenly over ``groups``: group g holds rows [first(g), first(g + 1))."""

    rows: int
    groups: int

    def first(self, group: int) -> int:
        """Give the first row of a group."""
        return group * self.rows // self.groups

    def group(self, row: int) -> int:
        """Give the group of a row."""
        return ((row + 1) * self.groups - 1) // self.rows


@dataclass(frozen=True)
class Sizes:
    """Sizes of the lists at the epoch, and the whole days that have passed since."""

    partners: int = 250
    usage: int = 20_000
    billing: int = 2_000
    days: int = 0

    @cached_property
    def base(self) -> Spread:
        """The rows and groups that exist at the epoch."""
        return Spread(self.usage, self.billing or -(-self.usage // ROWS_PER_UNBILLED_GROUP))

    @cached_property
    def daily(self) -> Spread:
        """The rows and groups that each day adds."""
        base = self.base
        return Spread(daily_growth(base.rows), daily_growth(base.groups))

    @property
    def partners_now(self) -> int:
        """Partners as of today."""
        return self.partners_on(self.days)

    @property
    def usage_now(self) -> int:
        """Usage rows as of today."""
        return self.usage + self.days * self.daily.rows

    @property
    def billing_now(self) -> int:
        """Billing records as of today."""
        return self.billing + self.days * self.daily.groups if self.billing else 0

    def partners_on(self, day: int) -> int:
        """Give the partners that exist on a growth day."""
        return self.partners + day // PARTNER_DAYS if self.partners else 0

    def born(self, group: int) -> int:
        """Give the growth day that added a group, 0 for the groups of the epoch."""
        beyond = group - self.base.groups
        return beyond // self.daily.groups + 1 if beyond >= 0 else 0

    def group_of(self, row: int) -> int:
        """Give the group of a usage row."""
        if row < self.usage:
            return self.base.group(row)
        day, rest = divmod(row - self.usage, self.daily.rows)
        return self.base.groups + day * self.daily.groups + self.daily.group(rest)

    def rows_of(self, group: int) -> range:
        """Give the usage rows of a group."""
        if group < self.base.groups:
            return range(self.base.first(group), self.base.first(group + 1))
        day, rest = divmod(group - self.base.groups, self.daily.groups)
        start = self.usage + day * self.daily.rows
        return range(start + self.daily.first(rest), start + self.daily.first(rest + 1))
