"""What is still to be paid by currency: how much of it is disputed.

Not here: by how long it has been due (`sql/receivables.sql`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.finance.reports.amounts import Amount
from pipelines.warehouse.duckdb_file import Row


@dataclass(frozen=True)
class ToBePaid:
    """What is still to be paid in a currency, less credit notes.

    `disputed` is that of bills of which an open break says that they bill too much, or cannot say
    how much; `undisputed` that of all others. Of `unknown_bills`, nobody can say what is open: they
    are counted, and add nothing.
    """

    currency: str | None
    disputed: Amount
    undisputed: Amount
    unknown_bills: int

    @property
    def total(self) -> Amount:
        """The sum of both."""
        return self.disputed.plus(self.undisputed.amount, self.undisputed.number)

    def as_json(self) -> Row:
        """Return it as `report --json` has it."""
        return {
            "currency": self.currency,
            "disputed": self.disputed.amount,
            "disputed_bills": self.disputed.number,
            "undisputed": self.undisputed.amount,
            "undisputed_bills": self.undisputed.number,
            "total": self.total.amount,
            "bills": self.total.number,
            "unknown_bills": self.unknown_bills,
        }


def judge_to_be_paid(rows: Iterable[Row]) -> tuple[ToBePaid, ...]:
    """Return what is still to be paid, of the rows of query `to_be_paid`."""
    sums = []
    for row in rows:
        currency = row["currency"]
        to_be_paid = ToBePaid(
            currency=currency,
            disputed=Amount(currency, row["disputed"], row["disputed_bills"]),
            undisputed=Amount(currency, row["undisputed"], row["undisputed_bills"]),
            unknown_bills=row["unknown_bills"],
        )
        sums.append(to_be_paid)
    return tuple(sums)
