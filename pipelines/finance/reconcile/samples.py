"""What a sample of the rows of a published version says of its numbers: sums and products.

Not here: shares of values over all rows (evidence). Numbers are exact decimals.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import permutations
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core.parse import parse_number
from pipelines.finance.currencies import minor_unit, read_code
from pipelines.finance.reconcile.evidence import Share
from pipelines.finance.reconcile.roles import FieldColumn

FEWEST_ROWS: Final = 5  # that show a product
BILLED_USAGE_ROLES: Final = (
    "usage.id", "usage.amount", "usage.currency", "billing.line_usage", "billing.line_amount",
)  # fmt: skip
TOTALS_ROLES: Final = (
    "usage.partner", "usage.currency", "usage.amount", "billing.partner", "billing.currency",
    "billing.amount",
)  # fmt: skip
# The product of two decimals of 38 digits has 76.
EXACT_DIGITS: Final = 100
# The same rows each time, so that `mapping accept` writes what `mapping propose` showed.
SAMPLE: Final = "USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
SAMPLED: Final = SAMPLE.format(rows=2000)
FEW_SAMPLED: Final = SAMPLE.format(rows=200)
LINES: Final = """
JOIN {source} ON line._connection = record._connection AND line._parent_key = record._key
"""
SUMS: Final = """
SELECT list({line}), {totals}
FROM (FROM current.{stream} {sampled}) AS record {lines}
GROUP BY record._connection, record._key, {totals}
"""
# Sampled usage with the lines that name it, and each partner's usage and bills.
BILLED_USAGE: Final = """
SELECT {currency}, [{used}], list({billed})
FROM (FROM current.usage {sampled}) AS record
JOIN {source} ON line._connection = record._connection
    AND CAST({line_usage} AS VARCHAR) = CAST({id} AS VARCHAR)
GROUP BY record._connection, record._key, {currency}, {used}
"""
AGREEING: Final = """
SELECT {used}, {billed}
FROM (FROM current.usage {sampled}) AS record
JOIN {source} ON line._connection = record._connection
    AND CAST({line_usage} AS VARCHAR) = CAST({id} AS VARCHAR)
GROUP BY record._connection, record._key
"""
TOTALS: Final = """
SELECT used.currency, used.amounts, billed.amounts
FROM (
    SELECT
        CAST({used_partner} AS VARCHAR) AS partner, {used_currency} AS currency,
        list({used_amount}) AS amounts
    FROM (FROM current.usage) AS record
    GROUP BY ALL
) AS used
JOIN (
    SELECT
        CAST({billed_partner} AS VARCHAR) AS partner, {billed_currency} AS currency,
        list({billed_amount}) AS amounts
    FROM (FROM current.billing) AS record
    GROUP BY ALL
) AS billed USING (partner, currency)
{sampled}
"""
ROWS: Final = "SELECT {values} FROM current.{stream} AS record {lines} {sampled}"


class Pair(NamedTuple):
    """What was used and what is billed for it, in a currency as it is compared."""

    currency: str | None
    used: Decimal
    billed: Decimal


class Samples:
    """Sums and products in sampled rows of `current`."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db

    def sums(self, line: FieldColumn, totals: Sequence[FieldColumn]) -> dict[FieldColumn, Share]:
        """Return for which share of sampled bills a column of lines adds up to each of bills."""
        query = SUMS.format(
            line=line.value,
            totals=", ".join(total.value for total in totals),
            stream=line.stream,
            sampled=SAMPLED,
            lines=LINES.format(source=line.source),
        )
        bills = self._rows(query)
        with localcontext(prec=EXACT_DIGITS):
            sums = [_sum(amounts) for amounts, *_totals in bills]
        shares = {}
        # The amounts of lines are the first column of the query.
        for column, total in enumerate(totals, start=1):
            answers = []
            for bill, added in zip(bills, sums, strict=True):
                if bill[column] is not None:
                    answers.append(_number(bill[column]) == added)
            shares[total] = Share.of(answers)
        return shares

    def billed_usage(self, roles: Mapping[str, FieldColumn]) -> Iterator[Pair]:
        """Yield sampled usage with the sum of the lines that name it; nothing without the roles."""
        if roles.keys() >= set(BILLED_USAGE_ROLES):
            billed = roles["billing.line_amount"]
            query = BILLED_USAGE.format(
                id=roles["usage.id"].value,
                used=roles["usage.amount"].value,
                currency=roles["usage.currency"].value,
                line_usage=roles["billing.line_usage"].value,
                billed=billed.value,
                source=billed.source,
                sampled=SAMPLED,
            )
            yield from self._pairs(query)

    def agreeing(
        self,
        usage: tuple[FieldColumn, list[FieldColumn]],
        lines: tuple[FieldColumn, list[FieldColumn]],
    ) -> dict[tuple[FieldColumn, FieldColumn], Share]:
        """Return for which share of sampled usage a column of lines adds up to one of usage.

        Each side is the column that identifies usage, and numbers. Zeros and ones show nothing.
        """
        key, used = usage
        reference, billed = lines
        query = AGREEING.format(
            id=key.value,
            line_usage=reference.value,
            source=reference.source,
            used=", ".join(f"any_value({column.value})" for column in used) or "NULL",
            billed=", ".join(f"list({column.value})" for column in billed) or "NULL",
            sampled=SAMPLED,
        )
        rows = self._rows(query)
        shares = {}
        with localcontext(prec=EXACT_DIGITS):
            for used_column, of_usage in enumerate(used):
                for billed_column, of_lines in enumerate(billed, start=len(used)):
                    share = _agreement(rows, used_column, billed_column)
                    if share.whole >= FEWEST_ROWS:
                        shares[of_usage, of_lines] = share
        return shares

    def totals(self, roles: Mapping[str, FieldColumn]) -> Iterator[Pair]:
        """Yield the totals of partners by currency; nothing without the roles."""
        if roles.keys() >= set(TOTALS_ROLES):
            query = TOTALS.format(
                used_partner=roles["usage.partner"].value,
                used_currency=roles["usage.currency"].value,
                used_amount=roles["usage.amount"].value,
                billed_partner=roles["billing.partner"].value,
                billed_currency=roles["billing.currency"].value,
                billed_amount=roles["billing.amount"].value,
                sampled=FEW_SAMPLED,
            )
            yield from self._pairs(query)

    def _pairs(self, query: str) -> Iterator[Pair]:
        with localcontext(prec=EXACT_DIGITS):
            for currency, used, billed in self._rows(query):
                yield Pair(read_code(currency), _sum(used), _sum(billed))

    def products(
        self, numbers: Sequence[FieldColumn], currency: FieldColumn | None
    ) -> dict[tuple[FieldColumn, ...], Share]:
        """Return in which share of sampled rows two columns multiply to a third, in both orders.

        A product is exact to half a minor unit. Zeros and factors of 1 show nothing.
        """
        if not numbers:
            return {}
        values = [column.value for column in numbers]
        values.append(currency.value if currency else "NULL")
        is_of_lines = numbers[0].row == "line"
        query = ROWS.format(
            values=", ".join(values),
            stream=numbers[0].stream,
            lines=LINES.format(source=numbers[0].source) if is_of_lines else "",
            sampled=SAMPLED,
        )
        rows = []
        for *sent, code in self._rows(query):
            rows.append((*map(_number, sent), minor_unit(read_code(code))))
        shares: dict[tuple[FieldColumn, ...], Share] = {}
        with localcontext(prec=EXACT_DIGITS):
            for x, y, z in permutations(range(len(numbers)), 3):
                if x > y:  # both orders have the same product
                    continue
                share = _product(rows, x, y, z)
                if share.whole >= FEWEST_ROWS:
                    shares[numbers[x], numbers[y], numbers[z]] = share
                    shares[numbers[y], numbers[x], numbers[z]] = share
        return shares

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._db.execute(query).fetchall()


def _agreement(rows: Sequence[tuple[Any, ...]], used: int, billed: int) -> Share:
    """Return in which share of rows the values of a column add up to the one of another."""
    answers = []
    for row in rows:
        amount = _number(row[used])
        added = _sum(row[billed])
        if amount and amount != 1:
            answers.append(amount == added)
    return Share.of(answers)


def _product(rows: Sequence[tuple[Any, ...]], x: int, y: int, z: int) -> Share:
    """Return in which share of rows two columns multiply to a third.

    It runs for every three of up to WIDTH columns over the whole sample, so it compares in place.
    """
    return Share.of(
        abs(row[x] * row[y] - row[z]) * 2 <= row[-1]
        for row in rows
        if row[x] and row[y] and row[z] and row[x] != 1 and row[y] != 1
    )


def _number(value: Any) -> Any:
    """Return what a text says as a number; other values as they are."""
    return parse_number(value) if isinstance(value, str) else value


def _sum(values: Iterable[Any]) -> Decimal:
    """Return the sum of the numbers among values; those that say none count nothing."""
    return sum(filter(None, map(_number, values)), Decimal(0))
