"""Own books of a customer: the rows of a ledger or a meter, with planted errors of their own.

Here: rows made of the records of a data set, whichever they are, and the truth about what is wrong
in them. Not here: the errors of the service's records (plant), which own books have as they are.
"""

import csv
import io
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

COLUMNS = ("Document", "Reseller", "Posted", "Value", "Ccy")
NOT_COUNTED = ("void", "draft", "cancelled")
LAST_MONTH = "2026-09"  # of those planted, whose bills were long issued
OFF = Decimal("1.23")
Record = Mapping[str, Any]
Row = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class OwnError:
    """One error: cause and record of its break, and what the service has minus own books."""

    cause: str
    record: str
    currency: str
    difference: str


@dataclass(frozen=True)
class OwnBooks:
    """The rows of own books, and what is wrong in them."""

    rows: tuple[Row, ...]
    errors: tuple[OwnError, ...]

    def as_csv(self) -> str:
        """Return the rows as a file."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows(self.rows)
        return text.getvalue()


def ledger(records: Iterable[Record], seed: int) -> OwnBooks:
    """Return a ledger of bills and credit notes, under their usual field names."""
    counted = [record for record in records if record["status"] not in NOT_COUNTED]
    return _planted([_row(bill, "billingId", "total") for bill in counted], f"{seed} ledger")


def meter(records: Iterable[Record], seed: int) -> OwnBooks:
    """Return usage as it is measured at home, under the usual field names."""
    return _planted([_row(usage, "usageId", "amount") for usage in records], f"{seed} meter")


def _row(record: Record, key: str, amount: str) -> Row:
    return (
        record[key],
        record["partnerId"],
        record["period"]["start"],
        str(record[amount]),
        record["currency"],
    )


Wrong = tuple[list[Row], list[OwnError]]


def _missing(row: Row) -> Wrong:
    return [], [OwnError("missing in own books", row[0], row[4], row[3])]


def _only(row: Row) -> Wrong:
    key, *about, amount, currency = row
    made_up = f"own-{key}"
    error = OwnError("only in own books", made_up, currency, str(-Decimal(amount)))
    return [row, (made_up, about[0], about[1], amount, currency)], [error]


def _twice(row: Row) -> Wrong:
    difference = str(-Decimal(row[3]))
    return [row, row], [OwnError("more than once in own books", row[0], row[4], difference)]


def _other_amount(row: Row) -> Wrong:
    key, partner, day, amount, currency = row
    more = str(Decimal(amount) + OFF)
    return [(key, partner, day, more, currency)], [
        OwnError("other amount", key, currency, str(-OFF))
    ]


def _other_currency(row: Row) -> Wrong:
    key, partner, day, amount, currency = row
    other = "CHF"  # no record has it
    return [(key, partner, day, amount, other)], [
        OwnError("other currency", key, currency, amount),
        OwnError("other currency", key, other, str(-Decimal(amount))),
    ]


def _other_partner(row: Row) -> Wrong:
    key, _partner, day, amount, currency = row
    return [(key, "somebody-else", day, amount, currency)], [
        OwnError("other partner", key, currency, "0")
    ]


def _other_month(row: Row) -> Wrong:
    key, partner, day, amount, currency = row
    later = date.fromisoformat(day[:7] + "-15") + timedelta(days=31)
    return [(key, partner, f"{later:%Y-%m}", amount, currency)], [
        OwnError("other month", key, currency, "0")
    ]


MAKE: tuple[Callable[[Row], Wrong], ...] = (
    _missing,
    _only,
    _twice,
    _other_amount,
    _other_currency,
    _other_partner,
    _other_month,
)
EACH = 3  # errors of each kind


def _planted(rows: list[Row], seed: str) -> OwnBooks:
    """Plant errors in rows of months that are over; the order of all rows is that of a draw."""
    draw = random.Random(seed)  # noqa: S311 - made-up data
    first = min(row[2][:7] for row in rows)
    fit = [
        at for at, row in enumerate(rows) if first < row[2][:7] <= LAST_MONTH and Decimal(row[3])
    ]
    chosen = draw.sample(fit, EACH * len(MAKE))
    made: list[Row] = []
    errors: list[OwnError] = []
    for at, row in enumerate(rows):
        if at in chosen:
            wrong, of_row = MAKE[chosen.index(at) % len(MAKE)](row)
            made += wrong
            errors += of_row
        else:
            made.append(row)
    draw.shuffle(made)
    return OwnBooks(tuple(made), tuple(errors))
