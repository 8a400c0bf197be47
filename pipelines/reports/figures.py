"""What the finance report shows of a version: typed values with exact amounts."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, Final

EXACT: Final = Context(prec=100)  # the default would round a difference of 38 digits to 28
LONGEST_CHART: Final = 120  # months
MONTHS_AHEAD: Final = 12  # what is billed in advance; a later month is an error in the data
MOST_CHARTS: Final = 4
RECENT_MONTHS: Final = 3
CHECKS: Final = (
    "unknown_partner",
    "not_billed",
    "not_used",
    "billed_twice",
    "different",
    "disappeared",
)
Row = dict[str, Any]  # of a table that the page only prints: a file of `sql/` names its columns


@dataclass(frozen=True)
class Rule:
    """Whether a rule or a table of reconciliation was evaluated, else why not."""

    rule: str
    question: str
    evaluated: bool
    reason: str | None
    remedy: str


@dataclass(frozen=True)
class Proof:
    """What is known of a list. `complete` is None where it was never read."""

    connection: str
    stream: str
    is_compared: bool
    complete: bool | None
    rows: int | None
    as_of: datetime | None
    sentence: str | None


@dataclass(frozen=True)
class Currency:
    """Totals of one currency. `not_due` is the part of the difference that may still be billed."""

    currency: str | None
    rows: int
    used: Decimal
    billed: Decimal
    credited: Decimal
    difference: Decimal
    not_due: Decimal
    open_breaks: int


@dataclass(frozen=True)
class Month:
    """What was used and billed (less credit notes) in a month."""

    currency: str | None
    month: date | None
    used: Decimal
    billed: Decimal
    difference: Decimal
    open_breaks: int = 0


@dataclass(frozen=True)
class Earlier:
    """What the differences were at an earlier time: a version or a close."""

    title: str
    differences: dict[str | None, Decimal]

    def change(self, now: Currency) -> Decimal:
        """Return by how much the difference of a currency has changed since."""
        return EXACT.subtract(now.difference, self.differences.get(now.currency, Decimal(0)))


@dataclass(frozen=True)
class LastClose:
    """The month that was signed off last, and the version that was published then."""

    month: date
    version: int


@dataclass(frozen=True)
class Figures:
    """Everything that the report of a version shows.

    `problem` says why usage was not compared with billing; then only the proofs are filled.
    """

    version: int
    proofs: list[Proof]
    rules: dict[str, Rule]
    problem: str = ""
    currencies: list[Currency] = field(default_factory=list)
    breaks: list[Row] = field(default_factory=list)
    severities: list[Row] = field(default_factory=list)
    uncertain: list[Row] = field(default_factory=list)
    partners: list[Row] = field(default_factory=list)
    months: list[Month] = field(default_factory=list)
    ageing: list[Row] = field(default_factory=list)
    apart: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)
    previous: Earlier | None = None
    closed: Earlier | None = None

    @property
    def as_of(self) -> datetime | None:
        """End of the oldest read of the lists that are compared; None where one was never read."""
        times = [proof.as_of for proof in self.proofs if proof.is_compared]
        known = [time for time in times if time is not None]
        return min(known) if known and len(known) == len(times) else None

    @property
    def partial(self) -> list[Proof]:
        """The lists that are compared and not proven complete."""
        return [proof for proof in self.proofs if proof.is_compared and not proof.complete]

    @property
    def charted(self) -> list[str | None]:
        """The currencies with the most rows, which get a chart."""
        return [each.currency for each in self.currencies[:MOST_CHARTS]]

    @property
    def period(self) -> tuple[date, date] | None:
        """The first and the last month of all charts."""
        months = [each.month for key in self.charted for each in self.trend(key) if each.month]
        return (min(months), max(months)) if months else None

    @property
    def not_checked(self) -> list[Rule]:
        """What could not be evaluated and was to find breaks."""
        return [self.rules[name] for name in CHECKS if not self.rules[name].evaluated]

    def trend(self, currency: str | None) -> list[Month]:
        """Return the months of a chart without gaps: 120 up to the newest credible one."""
        latest = month_number(self.as_of) + MONTHS_AHEAD if self.as_of else LAST_MONTH
        known = {
            month_number(each.month): each
            for each in self.months
            if each.currency == currency and each.month and month_number(each.month) <= latest
        }
        end = max(known, default=0)
        shown = [number for number in sorted(known) if number > end - LONGEST_CHART]
        none = Decimal(0)
        numbers = range(shown[0], end + 1) if shown else ()
        return [
            known.get(number) or Month(currency, first_day(number), none, none, none)
            for number in numbers
        ]

    @property
    def recent(self) -> list[tuple[date, dict[str | None, Month]]]:
        """The newest months up to that of the data, each with its amounts by currency."""
        latest = month_number(self.as_of) if self.as_of else LAST_MONTH
        found: dict[date, dict[str | None, Month]] = {}
        for each in self.months:
            if each.month and month_number(each.month) <= latest:
                found.setdefault(each.month, {})[each.currency] = each
        return sorted(found.items(), reverse=True)[:RECENT_MONTHS]

    @property
    def beside_charts(self) -> list[Month]:
        """The months that no chart shows, newest first."""
        charted = {(each.currency, each.month) for key in self.charted for each in self.trend(key)}
        found = [each for each in self.months if (each.currency, each.month) not in charted]
        return sorted(found, key=lambda each: each.month or date.min, reverse=True)


def month_number(day: date) -> int:
    """Return the number of a month, counted from the year 0."""
    return day.year * 12 + day.month - 1


LAST_MONTH: Final = month_number(date.max)


def first_day(number: int) -> date:
    """Return the first day of the month with this number."""
    return date(number // 12, number % 12 + 1, 1)
