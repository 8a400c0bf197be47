"""Lays out rows for the page: which breaks have room on it, and rows as cells by currency."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pipelines.finance.reports.amounts import EXACT, Amount, SignedSums, add_up_by_sign
from pipelines.warehouse.duckdb_file import Row

IN_FULL: Final = 4  # breaks with all that is known of them
IN_A_LINE: Final = 6  # more breaks, one line each
Signs = tuple[Decimal, Decimal]


@dataclass(frozen=True)
class OpenBreaks:
    """The open breaks that the page shows, and what the others add up to, by sign.

    What own books say is in no sum of billed minus used: those left out have their own.
    """

    in_full: Sequence[Row]
    in_a_line: Sequence[Row]
    left_out: int
    left_out_high: int
    left_out_sums: SignedSums
    left_out_own: int
    left_out_own_sums: SignedSums

    def has_owner(self) -> bool:
        """Return whether a break that is shown in a line has an owner."""
        return any(row["owner"] for row in self.in_a_line)


@dataclass(frozen=True)
class Ages:
    """Sums of a currency by days, and all of them together."""

    by_days: dict[str, Amount]
    total: Amount


def lay_out_breaks(open_breaks: Sequence[Row], order: Sequence[str | None]) -> OpenBreaks:
    """Return which open breaks are shown: they come with the first one to do first."""
    shown = IN_FULL + IN_A_LINE
    left_out = open_breaks[shown:]
    own = [row for row in left_out if row["own_source"] is not None]
    others = [row for row in left_out if row["own_source"] is None]
    return OpenBreaks(
        in_full=open_breaks[:IN_FULL],
        in_a_line=open_breaks[IN_FULL:shown],
        left_out=len(others),
        left_out_high=sum(row["severity"] == "high" for row in left_out),
        left_out_sums=add_up_by_sign(others, order),
        left_out_own=len(own),
        left_out_own_sums=add_up_by_sign(own, order),
    )


def lay_out_ages(ageing: Iterable[Row]) -> dict[str | None, Ages]:
    """Return the open breaks of each currency by age, in the order of the rows."""
    return _lay_out(ageing, "days", "difference", "breaks")


def lay_out_due(receivables: Iterable[Row]) -> dict[str | None, Ages]:
    """Return what is to be paid in each currency, by when it is due."""
    return _lay_out(receivables, "due_in", "open", "bills")


def lay_out_overdue(receivables: Iterable[Row]) -> dict[str | None, Ages]:
    """Return what is overdue in each currency, by how long it has been."""
    overdue = (row for row in receivables if row["due_in"] == "overdue")
    return _lay_out(overdue, "days", "open", "bills")


def _lay_out(rows: Iterable[Row], group: str, amount: str, number: str) -> dict[str | None, Ages]:
    """Return sums of each currency by the values of a column, from two others."""
    ages = {}
    for currency, of_currency in by_currency(rows).items():
        by_days: dict[str, Amount] = {}
        total = Amount(currency, None, 0)
        for row in of_currency:
            before = by_days.get(row[group], Amount(currency, None, 0))
            by_days[row[group]] = before.plus(row[amount], row[number])
            total = total.plus(row[amount], row[number])
        ages[currency] = Ages(by_days, total)
    return ages


def lay_out_signs(ageing: Iterable[Row]) -> dict[tuple[str | None, str | None], Signs]:
    """Return the sums above and below zero that cancel in part, by currency and age.

    Of all ages of a currency, the age is None.
    """
    sums: dict[tuple[str | None, str | None], Signs] = {}
    for row in ageing:
        for days in (row["days"], None):
            above, below = sums.get((row["currency"], days), (Decimal(0), Decimal(0)))
            above = EXACT.add(above, row["overbilled"] or Decimal(0))
            below = EXACT.add(below, row["unbilled"] or Decimal(0))
            sums[row["currency"], days] = (above, below)
    return {key: signs for key, signs in sums.items() if all(signs)}


def by_currency(rows: Iterable[Row]) -> dict[str | None, list[Row]]:
    """Return the rows of each currency, in their order."""
    rows_of: dict[str | None, list[Row]] = {}
    for row in rows:
        rows_of.setdefault(row["currency"], []).append(row)
    return rows_of
