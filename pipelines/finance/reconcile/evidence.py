"""What the rows of a published version say about a field: shares of values, sums, products.

Shares are over all current rows. Sums and products are over a sample, in exact decimals.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import permutations
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core.parse import NUMBER, parse_number
from pipelines.finance.currencies import CODES, SPACES, minor_unit, read_code
from pipelines.finance.mapping import FIELD_PATH
from pipelines.finance.reconcile.roles import DAY, FieldColumn, read_columns

# A field of a list in a list is none of a line.
MAPPABLE: Final = re.compile(rf"(?!.*\[\].*\[\]){FIELD_PATH}").match
LABELS: Final = ("VARCHAR", "BIGINT")
# Different values that a status or kind has at most.
FEW: Final = 20
# A share of values that differ: what counts from 1 in every record refers to nothing.
SOME: Final = 0.5
FEWEST_ROWS: Final = 5  # that show a product
COUNTED: Final = 5  # numbers that COUNTS has for each column
BILLED_USAGE_ROLES: Final = (
    "usage.id", "usage.amount", "usage.currency", "billing.line_usage", "billing.line_amount",
)  # fmt: skip
TOTALS_ROLES: Final = (
    "usage.partner", "usage.currency", "usage.amount", "billing.partner", "billing.currency",
    "billing.amount",
)  # fmt: skip
# The product of two decimals of 38 digits has 76.
EXACT_DIGITS: Final = 100
KEYS: Final = """
SELECT loads.stream, max_by(loads.key, loads.valid_time) FROM meta.loads AS loads GROUP BY ALL
"""
# The first condition of each is fast, and spares most values the second one.
CODE: Final = """
CASE WHEN length({value}) BETWEEN 3 AND 9 THEN upper(trim({value}, '{spaces}')) IN {codes} END
"""
TIME: Final = "CASE WHEN {value} BETWEEN '0' AND ':' THEN {day} IS NOT NULL END"
NUMBER_TEXT: Final = """
CASE WHEN {value} BETWEEN '-' AND ':' THEN regexp_full_match({value}, '{number}') END
"""
COUNTS: Final = """
count({value}), approx_count_distinct({value}), count({value}) FILTER ({is_code}),
count({value}) FILTER ({is_time}), count({value}) FILTER ({is_number})
"""
SHARES: Final = """
SELECT count(*), count(DISTINCT {table.row}._connection), {counts}
FROM {table.source}
"""
VALUES: Final = """
SELECT DISTINCT {column.row}._connection AS connection, CAST({column.value} AS VARCHAR) AS value
FROM {column.source}
WHERE {column.value} IS NOT NULL
"""
FOUND: Final = """
SELECT count(*)
FROM (
    SELECT {column.row}._connection AS connection, CAST({column.value} AS VARCHAR) AS value
    FROM {column.source}
) AS one
SEMI JOIN ({targets}) AS target
    ON target.connection = one.connection AND target.value = one.value
"""
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


class Share(NamedTuple):
    """So many of so many. Written without rounding up: only all of them are 100 %."""

    part: int
    whole: int

    @classmethod
    def of(cls, answers: Iterable[bool]) -> "Share":
        """Return how many answers are yes."""
        answers = list(answers)
        return cls(sum(answers), len(answers))

    @property
    def value(self) -> float:
        """The share from 0 to 1; 0 of nothing."""
        return self.part / (self.whole or 1)

    def __str__(self) -> str:
        percent = self.part * 1000 // (self.whole or 1) / 10
        return f"{self.part:,} of {self.whole:,} ({percent:g} %)"


class Evidence:
    """Counts in the rows of `current`: `shares` of each column that a mapping can name, by kind.

    `keys` are the primary keys that the newest scan of each list had.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self.keys: dict[str, str | None] = dict(db.execute(KEYS).fetchall())
        self.shares: dict[FieldColumn, dict[str, Share]] = {}
        tables: dict[str, list[FieldColumn]] = {}
        for column in read_columns(db):
            if MAPPABLE(column.path):
                tables.setdefault(column.table, []).append(column)
        for columns in tables.values():
            self._measure(columns)

    def _measure(self, columns: Sequence[FieldColumn]) -> None:
        """Read a table once for the shares of all of its columns."""
        counts = ", ".join(map(_counts, columns))
        ((rows, connections, *numbers),) = self._rows(
            SHARES.format(table=columns[0], counts=counts)
        )
        if not rows:
            return
        for at, column in enumerate(columns):
            of_column = numbers[at * COUNTED : (at + 1) * COUNTED]
            self.shares[column] = _shares(column, of_column, rows, connections)

    def is_filled(self, column: FieldColumn) -> bool:
        """Whether every row has a value."""
        filled = self.shares[column]["filled"]
        return filled.part == filled.whole

    def is_unique(self, column: FieldColumn) -> bool:
        """Whether every row has a text or a whole number, and all differ in a connection."""
        labels = self.shares[column]["labels"]
        different = self.shares[column]["different"]
        if labels.part < labels.whole or different.value < SOME:
            return False
        count = f"SELECT count(*) FROM ({VALUES.format(column=column)}) AS one"
        return self._rows(count) == [(labels.whole,)]

    def referring(self, column: FieldColumn, target: FieldColumn) -> Share:
        """Return the share of values that are values of another column in the same connection."""
        if column.type not in LABELS:
            return Share(0, 0)
        targets = VALUES.format(column=target)
        ((part,),) = self._rows(FOUND.format(column=column, targets=targets))
        return Share(part, self.shares[column]["filled"].part)

    def values(self, column: FieldColumn) -> list[str]:
        """Return the different values of a column that has few, in their order."""
        rows = self._rows(VALUES.format(column=column))
        return sorted({value for _connection, value in rows})

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
        for at, total in enumerate(totals, start=1):
            answers = []
            for bill, added in zip(bills, sums, strict=True):
                if bill[at] is not None:
                    answers.append(_number(bill[at]) == added)
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
            for at_used, of_usage in enumerate(used):
                for at_billed, of_lines in enumerate(billed, start=len(used)):
                    share = _agreement(rows, at_used, at_billed)
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


def _counts(column: FieldColumn) -> str:
    """Return the expressions of COUNTED counts of a column."""
    if column.type == "VARCHAR":
        codes = tuple(sorted(CODES))
        is_code = CODE.format(value=column.value, spaces=SPACES, codes=codes)
        is_time = TIME.format(value=column.value, day=DAY.format(value=column.value))
        is_number = NUMBER_TEXT.format(value=column.value, number=NUMBER)
    else:
        is_code = "false"
        is_time = str(column.type.startswith(("DATE", "TIMESTAMP")))
        is_number = str(column.is_number)
    return COUNTS.format(value=column.value, is_code=is_code, is_time=is_time, is_number=is_number)


def _shares(
    column: FieldColumn, counts: Sequence[int], rows: int, connections: int
) -> dict[str, Share]:
    """Return the shares of a column, by what its counts mean."""
    values, distinct, codes, times, numbers = counts
    is_label = column.type in LABELS
    is_few = column.type == "VARCHAR" and distinct <= FEW
    return {
        "filled": Share(values, rows),
        "labels": Share(values if is_label else 0, rows),
        "numbers": Share(numbers, rows),
        "codes": Share(codes, values),
        "times": Share(times, values),
        "few": Share(values if is_few else 0, values),
        # About: DuckDB estimates how many differ, and each connection may have all of them.
        "different": Share(min(distinct * connections, values), values),
    }


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
