"""What a statement says: totals of a partner's month, and what is asked for.

Figures are those of the published books; of a closed month, those of its copy, which was signed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Final

import duckdb

from pipelines.finance.mapping import Side
from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.statements import words
from pipelines.finance.statements.tables import Key
from pipelines.warehouse.duckdb_file import Row, fetch_rows

MOST_LINES: Final = 100_000  # of a statement; the rest is counted
OF_PARTNER: Final = """
SELECT rows.* EXCLUDE (connection, partner)
FROM statement_{table} AS rows
WHERE rows.connection = $connection AND rows.partner = $partner
ORDER BY {order}
"""
BY_DIFFERENCE: Final = "rows.currency, abs(rows.difference) DESC NULLS LAST, rows.break_id"
BY_AMOUNT: Final = f"{BY_DIFFERENCE}, rows.side DESC, abs(rows.amount) DESC NULLS LAST, rows.id"


@dataclass(frozen=True)
class Source:
    """What figures were read from.

    `name` is what the statement says of it, `as_of` the end of its data. `provisional` are reasons
    that hold for all partners of a connection.
    """

    name: str
    as_of: datetime
    version: int
    provisional: tuple[str, ...] = ()
    is_signed: bool = False


@dataclass(frozen=True)
class Request:
    """A difference that the partner is asked to confirm or correct, with its records.

    `left_out` counts records for which the statement has no room.
    """

    text: str
    currency: str | None
    difference: Decimal | None
    lines: Sequence[Row]
    left_out: int = 0


@dataclass(frozen=True)
class Balance:
    """What is paid of a partner's bills, by currency, as of `as_of`.

    Each row: `billed`, `paid`, `open` and `in_question` (a part of it) of the bills of the month,
    `open_of_all` of those of all months. None: not known.
    """

    rows: Sequence[Row]
    as_of: datetime


@dataclass(frozen=True)
class Statement:
    """What a partner is told of a month; amounts are exact. `totals` has a row by currency.

    `balance` is None where nobody knows what is paid. It is of the published books: no copy of a
    closed month has it. `breaks` are those of which it tells, `side` is that of the accounts.
    """

    connection: str
    partner: str
    name: str
    month: date
    source: Source
    totals: Sequence[Row]
    fees: Sequence[Row] = ()
    requests: Sequence[Request] = ()
    corrections: Sequence[Row] = ()
    provisional: Sequence[str] = field(default_factory=tuple)
    balance: Balance | None = None
    breaks: Sequence[str] = ()
    side: Side | None = None


def read_statement(
    db: duckdb.DuckDBPyConnection, key: Key, name: str, month: date, source: Source
) -> Statement:
    """Return the statement of a partner whose month was prepared."""
    requests = _rows(db, key, "requests", BY_DIFFERENCE)
    fees = _rows(db, key, "fees", "ALL")
    totals = _rows(db, key, "totals", "rows.currency NULLS LAST")
    certain = [row for row in requests if not row["is_uncertain"]]
    return Statement(
        connection=key[0],
        partner=key[1],
        name=name,
        month=month,
        source=source,
        totals=[_divided(row, fees, certain) for row in totals],
        fees=fees,
        requests=list(_with_lines(certain, _rows(db, key, "lines", BY_AMOUNT))),
        corrections=_rows(db, key, "corrections", "ALL"),
        breaks=[row["break_id"] for row in _rows(db, key, "told", "rows.break_id")],
        provisional=list(_why_provisional(source, totals, len(requests) - len(certain))),
    )


def read_balance(db: duckdb.DuckDBPyConnection, key: Key, as_of: datetime) -> Balance:
    """Return what is paid of a partner's bills, of books in which balances were prepared."""
    return Balance(_rows(db, key, "balances", "rows.currency NULLS LAST"), as_of)


def _rows(db: duckdb.DuckDBPyConnection, key: Key, table: str, order: str) -> list[Row]:
    query = OF_PARTNER.format(table=table, order=order)
    if table == "lines":
        query += f"LIMIT {MOST_LINES}"
    return fetch_rows(db, query, {"connection": key[0], "partner": key[1]})


def _divided(total: Row, fees: Sequence[Row], requests: Sequence[Row]) -> Row:
    """Return totals with the parts of their difference: accepted fees, what is asked for, rest."""
    of_fees = _sum(fees, total["currency"], "amount")
    asked = _sum(requests, total["currency"], "difference")
    rest = EXACT.subtract(EXACT.subtract(total["difference"], of_fees), asked)
    return {**total, "fees": of_fees, "asked": asked, "rest": rest}


def _sum(rows: Sequence[Row], currency: str | None, amount: str) -> Decimal:
    total = Decimal(0)
    for row in rows:
        if row["currency"] == currency and row[amount] is not None:
            total = EXACT.add(total, row[amount])
    return total


def _with_lines(requests: Sequence[Row], lines: Sequence[Row]) -> Iterator[Request]:
    """Yield what is asked for, in the order of the rows, which is that of the lines, too."""
    lines_of = {name: list(rows) for name, rows in groupby(lines, lambda row: row["break_id"])}
    for row in requests:
        own = lines_of.get(row["break_id"], [])
        yield Request(
            text=words.finding(row["rule"], row["cause"] or ""),
            currency=row["currency"],
            difference=row["difference"],
            lines=own,
            left_out=row["lines"] - len(own),
        )


def _why_provisional(source: Source, totals: Sequence[Row], uncertain: int) -> Iterator[str]:
    verdicts = {row["verdict"] for row in totals}
    if "tentative" in verdicts and words.NOT_OVER not in source.provisional:
        yield words.NOT_OVER
    yield from source.provisional
    if "not proven" in verdicts and words.NOT_COMPLETE not in source.provisional:
        yield words.UNREAD
    if uncertain:
        yield words.UNCERTAIN.format(f"{uncertain:,}")
