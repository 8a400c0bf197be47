"""What the rows of a published version say about a field: shares of values, sums, products.

Shares are over all current rows. Sums and products are over a sample that is spread over the table,
in exact decimals.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import permutations
from typing import Any, Final

import duckdb

from pipelines.config.mapping import FIELD_PATH
from pipelines.core.currencies import CODES, minor_unit
from pipelines.core.text import quote_identifier
from pipelines.reconcile.roles import Column, read_columns

ITEM: Final = "[]"
MAPPABLE: Final = re.compile(rf"(?!.*\[\].*\[\]){FIELD_PATH}").match  # lists in lists are no lines
LABELS: Final = ("VARCHAR", "BIGINT")
SAMPLE_ROWS: Final = 2_000  # about
FEW: Final = 20  # different values that a status or kind has at most
SOME: Final = 0.5  # of values that differ: what counts from 1 in every record refers to nothing
FEWEST_ROWS: Final = 5  # that show a product
HASHES: Final = 1_000_000  # that are in memory at once; 128 MB hold twice as many
EXACT_DIGITS: Final = 100  # the product of two decimals has 76
KEYS: Final = """
SELECT loads.stream, max_by(loads.key, loads.valid_time) FROM meta.loads AS loads GROUP BY ALL
"""
# The first condition of each is fast, and spares most values the second one.
CODE: Final = f"CASE WHEN length({{value}}) = 3 THEN {{value}} IN {tuple(sorted(CODES))} END"
TIME: Final = """
CASE WHEN {value} BETWEEN '0' AND ':'
    THEN coalesce(TRY_CAST({value} AS DATE), TRY_CAST({value} || '-01' AS DATE)) IS NOT NULL END
"""
COUNTS: Final = """
count({{value}}), approx_count_distinct({{value}}), count({{value}}) FILTER ({code}),
count({{value}}) FILTER ({time})
"""
ROWS: Final = "count(*), count(DISTINCT {row}._connection) FROM current.{table} AS {row}"
# Numbers of another type than that of hashes would make it eight times as slow.
HASHED: Final = """
SELECT hash({row}._connection, CAST({value} AS VARCHAR)) AS _hash
FROM current.{table} AS {row}
WHERE {value} IS NOT NULL AND _hash % $parts::UBIGINT = $part::UBIGINT
"""
FOUND: Final = "SELECT count(*) FROM ({}) AS one WHERE one._hash IN ({})"
UNIQUE: Final = "SELECT count(DISTINCT one._hash) FROM ({}) AS one"
VALUES: Final = """
SELECT DISTINCT {value}
FROM current.{table} AS {row}
WHERE {value} IS NOT NULL
ORDER BY ALL
"""
SAMPLE: Final = """
SELECT hash({sampled}) AS _hash, {values}
FROM current.{stream} AS record {lines}
WHERE _hash % {step} = 0
"""
RECORD: Final = "record._connection, record._key"
ITEM_OF: Final = "line._connection, line._parent_key, line._index"
LINES: Final = """
JOIN current.{} AS line ON line._connection = record._connection AND line._parent_key = record._key
"""


@dataclass(frozen=True)
class Share:
    """So many of so many. Written without rounding up: only all of them are 100 %."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """The share from 0 to 1; 0 of nothing."""
        return self.part / (self.whole or 1)

    def __str__(self) -> str:
        percent = self.part * 1000 // (self.whole or 1) / 10
        return f"{self.part:,} of {self.whole:,} ({percent:g} %)"


Products = dict[tuple[Column, ...], Share]


class Evidence:
    """Counts in the rows of `current`: `shares` of each column that a mapping can name, by kind.

    `keys` are the primary keys that the newest scan of each list had.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self.keys: dict[str, str | None] = dict(db.execute(KEYS).fetchall())
        self.shares: dict[Column, dict[str, Share]] = {}
        columns = [each for each in read_columns(db) if MAPPABLE(each.path)]
        for table in dict.fromkeys(each.table for each in columns):
            self._measure([each for each in columns if each.table == table])

    def _measure(self, columns: Sequence[Column]) -> None:
        """Read a table once for the shares of all of its columns."""
        query, counts = _filled(ROWS, columns[0]), map(_counts, columns)
        (counted,) = self._db.execute(f"SELECT {', '.join(counts)}, {query}").fetchall()
        *found, rows, connections = counted
        for at, column in enumerate(columns if rows else ()):
            values, distinct, codes, times = found[4 * at : 4 * at + 4]
            is_few = column.type == "VARCHAR" and distinct <= FEW
            self.shares[column] = {
                "filled": Share(values, rows),
                "labels": Share(values if column.type in LABELS else 0, rows),
                "numbers": Share(values if column.is_number else 0, rows),
                "codes": Share(codes, values),
                "times": Share(times, values),
                "few": Share(values if is_few else 0, values),
                "different": Share(min(distinct * connections, values), values),  # about
            }

    def is_unique(self, column: Column) -> bool:
        """Whether every row has a text or a whole number, and all differ in a connection."""
        found, rows = self.shares[column], self.shares[column]["labels"].whole
        if found["labels"].part < rows or found["different"].value < SOME:
            return False
        return self._in_parts(UNIQUE.format(_filled(HASHED, column)), rows) == rows

    def found(self, column: Column, target: Column) -> Share:
        """Return the share of values that are values of another column in the same connection."""
        if column.type not in LABELS:
            return Share(0, 0)
        query = FOUND.format(_filled(HASHED, column), _filled(HASHED, target))
        part = self._in_parts(query, self.shares[target]["filled"].part)
        return Share(part, self.shares[column]["filled"].part)

    def values(self, column: Column) -> list[str]:
        """Return the different values of a column that has few, in their order."""
        return [value for (value,) in self._db.execute(_filled(VALUES, column)).fetchall()]

    def sums(self, line: Column, totals: Sequence[Column]) -> dict[Column, Share]:
        """Return for which share of sampled bills a column of lines adds up to each of bills."""
        sums, bills, shares = defaultdict[int, Decimal](Decimal), {}, {}
        with localcontext(prec=EXACT_DIGITS):
            for bill, amount, *amounts in self._sample([line, *totals], totals[0]):
                sums[bill] += amount or 0
                bills[bill] = amounts
        for at, total in enumerate(totals):
            known = {
                bill: amounts[at] for bill, amounts in bills.items() if amounts[at] is not None
            }
            equal = sum(amount == sums[bill] for bill, amount in known.items())
            shares[total] = Share(equal, len(known))
        return shares

    def products(self, numbers: Sequence[Column], currency: Column | None) -> Products:
        """Return in which share of sampled rows two columns multiply to a third, in both orders.

        A product is exact to half a minor unit. Zeros and factors of 1 show nothing.
        """
        asked = [*numbers, *([currency] if currency else [])]
        sample = self._sample(asked, numbers[0]) if numbers else []
        rows = [(minor_unit(row[-1] if currency else None), row[1:]) for row in sample]
        found = Products()
        with localcontext(prec=EXACT_DIGITS):
            for one, two, amount in permutations(range(len(numbers)), 3):
                if one > two:
                    continue
                exact = [
                    abs(row[one] * row[two] - row[amount]) * 2 <= unit
                    for unit, row in rows
                    if row[one] and row[two] and row[amount] and 1 not in {row[one], row[two]}
                ]
                if len(exact) >= FEWEST_ROWS:
                    share = Share(sum(exact), len(exact))
                    found[numbers[one], numbers[two], numbers[amount]] = share
                    found[numbers[two], numbers[one], numbers[amount]] = share
        return found

    def _sample(self, columns: Sequence[Column], of: Column) -> list[tuple[Any, ...]]:
        """Return values of some rows of the table of column `of`.

        If that is of records and the first column is of lines, all lines of these records.
        """
        first, values = columns[0], ", ".join(_filled("{value}", each) for each in columns)
        lines = LINES.format(quote_identifier(first.table)) if ITEM in first.path else ""
        sampled = ITEM_OF if ITEM in of.path else RECORD
        step = -(-self.shares[of]["filled"].whole // SAMPLE_ROWS)
        terms = {"values": values, "stream": of.stream, "lines": lines, "step": step}
        query = SAMPLE.format(sampled=sampled, **terms)
        return self._db.execute(query).fetchall()

    def _in_parts(self, query: str, rows: int) -> int:
        """Return the sum of a count over values in as many parts as keep them in memory."""
        parts = rows // HASHES + 1
        bound = ({"parts": parts, "part": part} for part in range(parts))
        return sum(self._db.execute(query, each).fetchall()[0][0] for each in bound)


def _filled(query: str, column: Column) -> str:
    """Return a query, or a part of one, for a column of a table of records or lines."""
    row, name = "line" if ITEM in column.path else "record", quote_identifier(column.name)
    return query.format(row=row, value=f"{row}.{name}", table=quote_identifier(column.table))


def _counts(column: Column) -> str:
    if column.type == "VARCHAR":
        return _filled(COUNTS.format(code=CODE, time=TIME), column)
    is_time = column.type.startswith(("DATE", "TIMESTAMP"))
    return _filled(COUNTS.format(code="false", time=is_time), column)
