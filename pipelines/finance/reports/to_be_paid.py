"""What is still to be paid by currency: how much of it is in question, and what withholding leaves.

Not here: by how long it has been due (`sql/receivables.sql`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pipelines.finance.reports.amounts import EXACT, Amount, Sums
from pipelines.warehouse.duckdb_file import Row


@dataclass(frozen=True)
class ToBePaid:
    """What is still to be paid in a currency.

    `in_question` is that of bills of which an open break that is certain says that they bill too
    much, or cannot say how much; `not_in_question` that of all others. `credited` is below zero:
    credit notes that are not used up. Of `unknown_bills`, nobody can say what is open: they are
    counted, and add nothing. `withheld` is what may be withheld of bills that are not paid, None
    where nobody knows it, and where you are paid.
    """

    currency: str | None
    in_question: Amount
    not_in_question: Amount
    credited: Amount
    unknown_bills: int
    withheld: Decimal | None

    @property
    def after_withholding(self) -> Decimal | None:
        """What is to be paid if all is withheld that may be. Not known beside unknown bills."""
        if self.withheld is None or self.total is None or self.unknown_bills:
            return None
        return EXACT.subtract(self.total, self.withheld)

    @property
    def of_bills(self) -> Amount:
        """What is to be paid of all bills."""
        return self.in_question.plus(self.not_in_question.amount, self.not_in_question.number)

    @property
    def total(self) -> Decimal | None:
        """What is to be paid of all bills, less credit notes."""
        return self.of_bills.plus(self.credited.amount, 0).amount

    def as_json(self) -> Row:
        """Return it as `report --json` has it."""
        return {
            "currency": self.currency,
            "in_question": self.in_question.amount,
            "bills_in_question": self.in_question.number,
            "not_in_question": self.not_in_question.amount,
            "bills_not_in_question": self.not_in_question.number,
            "bills": self.of_bills.number,
            "credited": self.credited.amount,
            "credit_notes": self.credited.number,
            "total": self.total,
            "unknown_bills": self.unknown_bills,
            "withheld": self.withheld,
            "after_withholding": self.after_withholding,
        }


def judge_to_be_paid(rows: Iterable[Row], withheld: Sums | None) -> tuple[ToBePaid, ...]:
    """Return what is still to be paid, of the rows of query `to_be_paid`.

    `withheld` is what you may withhold; None where nobody knows it, and where you are paid.
    """
    sums = []
    for row in rows:
        currency = row["currency"]
        to_be_paid = ToBePaid(
            currency=currency,
            in_question=Amount(currency, row["in_question"], row["bills_in_question"]),
            not_in_question=Amount(currency, row["not_in_question"], row["bills_not_in_question"]),
            credited=Amount(currency, row["credited"], row["credit_notes"]),
            unknown_bills=row["unknown_bills"],
            withheld=None if withheld is None else _withheld(withheld.get(currency)),
        )
        sums.append(to_be_paid)
    return tuple(sums)


def _withheld(sum_: Amount | None) -> Decimal | None:
    return sum_.amount if sum_ else Decimal(0)
