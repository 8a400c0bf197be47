"""Here: what of the published books needs a person: open breaks, changed months, unmapped values.

The checks of `sync` and `status`, Dagster's checks and the messages to operators show these values.
They are a part of the verdicts. Not here: the answers for a month and for the version (verdicts).
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import msgspec

from pipelines.finance.doubt import Doubt
from pipelines.finance.reports.month_verdicts import ChangedMonth, judge_changed_months
from pipelines.finance.reports.queries import Figures
from pipelines.finance.unread import notes_of

QUERIES: Final = (
    "open_by_rule", "changed_closes", "unseen_values", "unknown_currencies", "read_otherwise",
)  # fmt: skip


class OpenBreaks(msgspec.Struct, frozen=True):
    """The open breaks of a rule in one currency; `large` of them reach the amount of an alert."""

    rule: str
    currency: str | None
    breaks: int
    difference: Decimal | None
    large: int


class UnseenValue(msgspec.Struct, frozen=True):
    """A value of bills that the mapping does not list; `amounts` are by currency, as text."""

    connection: str
    value: str
    example: str | None
    bills: int
    is_counted: bool
    amounts: str | None


class UnknownCurrency(msgspec.Struct, frozen=True):
    """A code that is no currency of ISO 4217, and how many usage records and bills have it."""

    currency: str
    used: int
    bills: int


class ReadOtherwise(msgspec.Struct, frozen=True):
    """Records of a closed month that did not change and are read otherwise, in one currency."""

    month: date
    currency: str | None
    records: int
    difference: Decimal | None


@dataclass(frozen=True)
class Alerts:
    """What of books needs a person.

    `not_evaluated` has the reason of each rule and table without which nobody can say that there
    are no breaks, `uncertain` why those of own books are in doubt, `notes` are about the others.
    `unread` are records that cannot be read.
    """

    not_evaluated: dict[str, str]
    uncertain: dict[str, str]
    notes: tuple[Doubt, ...]
    unread: tuple[Doubt, ...]
    open_breaks: tuple[OpenBreaks, ...]
    changed_months: tuple[ChangedMonth, ...]
    unseen_values: tuple[UnseenValue, ...]
    unknown_currencies: tuple[UnknownCurrency, ...]
    read_otherwise: tuple[ReadOtherwise, ...]


def judge_alerts(figures: Figures) -> Alerts:
    """Return what needs a person, of figures with the rows of `QUERIES`."""
    tables = figures.tables
    not_evaluated = {}
    uncertain = {}
    for row in figures.not_evaluated:
        if row["evaluated"]:
            uncertain[row["rule"]] = row["reason"]
        elif row["is_needed"]:
            not_evaluated[row["rule"]] = row["reason"]
    return Alerts(
        not_evaluated=not_evaluated,
        uncertain=uncertain,
        notes=tuple(notes_of(figures.not_evaluated)),
        unread=tuple(figures.unread),
        open_breaks=msgspec.convert(tables["open_by_rule"], tuple[OpenBreaks, ...]),
        changed_months=judge_changed_months(figures),
        unseen_values=msgspec.convert(tables["unseen_values"], tuple[UnseenValue, ...]),
        unknown_currencies=msgspec.convert(
            tables["unknown_currencies"], tuple[UnknownCurrency, ...]
        ),
        read_otherwise=msgspec.convert(tables["read_otherwise"], tuple[ReadOtherwise, ...]),
    )
