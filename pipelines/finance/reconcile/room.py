"""How large numbers may be so that no sum of them is too large for a decimal of 38 digits.

A sum that overflows fails its whole query. So numbers that could add up to more are not read: their
records are unreadable, and everything else is evaluated.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.finance.reconcile.roles import FieldColumn
from pipelines.finance.reconcile.spelled import DIGITS

# Sums are of both sides, their differences, and both before and after a change.
FACTOR: Final = 100
ROWS: Final = "SELECT count(*) FROM history.{}"
# The digits before the point of a number of SQL; rarely counted, as that costs more than a sum.
WIDTH: Final = "length(split_part(ltrim(CAST({} AS VARCHAR), '-'), '.', 1))"
WIDTHS: Final = """
SELECT {width} AS digits, count(*)
FROM history.{table} AS {column.row}
WHERE {column.value} IS NOT NULL
GROUP BY digits
"""


class Numbers:
    """The numbers of one measure, such as all amounts, whose type has `room` before the point."""

    def __init__(self, db: duckdb.DuckDBPyConnection, room: int) -> None:
        self._db = db
        self._room = room
        self._counts = Counter[int]()
        self._columns = list[FieldColumn]()
        self._rows = 1

    def add_column(self, column: FieldColumn, texts: Iterable[Any]) -> None:
        """Add a column of numbers, or what its texts say; each text may be in every row."""
        rows = self._count_rows(column)
        self._rows += rows
        if column.is_number:
            self._columns.append(column)
        for text in texts:
            self._counts[digits_before(text)] += rows

    def add(self, values: Iterable[Any]) -> None:
        """Add numbers that no column has."""
        self._counts.update(map(digits_before, values))

    def most_digits(self) -> int:
        """Return how many digits a number may have before the point."""
        widest = max(self._counts, default=0)
        for column in self._columns:
            widest = max(widest, column.digits)
        # As if every number had the most digits: nearly always enough, and nothing is counted.
        if widest + len(str(FACTOR * self._rows)) <= self._room:
            return self._room
        for column in self._columns:
            query = WIDTHS.format(
                width=WIDTH.format(column.value),
                table=quote_identifier(column.table),
                column=column,
            )
            self._counts.update(dict(self._db.execute(query).fetchall()))
        total = 0
        for digits in sorted(self._counts):
            total += self._counts[digits] * 10**digits
            if total * FACTOR > 10**self._room:
                return min(digits - 1, self._room)
        return self._room

    def _count_rows(self, column: FieldColumn) -> int:
        ((rows,),) = self._db.execute(ROWS.format(quote_identifier(column.table))).fetchall()
        return int(rows)


def digits_before(value: Any) -> int:
    """Return the digits of a number before the point; 0 of anything else."""
    if not isinstance(value, Decimal) or not value:
        return 0
    return max(0, value.adjusted() + 1)


def fits_in(value: str, digits: int) -> str:
    """Return the condition that a number has no more digits before the point."""
    return f"{WIDTH.format(value)} <= {min(digits, DIGITS)}"
