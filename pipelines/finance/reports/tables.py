"""Lays out rows for the page: which breaks have room on it, and rows as cells by currency."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pipelines.finance.reports.amounts import Amount, SignedSums, add_up_by_sign
from pipelines.warehouse.duckdb_file import Row

IN_FULL: Final = 4  # breaks with all that is known of them
IN_A_LINE: Final = 6  # more breaks, one line each


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


def lay_out_ages(
    ageing: Iterable[Row], amount: str = "difference", number: str = "breaks"
) -> dict[str | None, Ages]:
    """Return sums by age of each currency, in the order of the rows, from two of their columns."""
    ages = {}
    for currency, rows in by_currency(ageing).items():
        by_days = {row["days"]: Amount(currency, row[amount], row[number]) for row in rows}
        total = Amount(currency, None, 0)
        for sum_ in by_days.values():
            total = total.plus(sum_.amount, sum_.number)
        ages[currency] = Ages(by_days, total)
    return ages


def by_currency(rows: Iterable[Row]) -> dict[str | None, list[Row]]:
    """Return the rows of each currency, in their order."""
    rows_of: dict[str | None, list[Row]] = {}
    for row in rows:
        rows_of.setdefault(row["currency"], []).append(row)
    return rows_of
