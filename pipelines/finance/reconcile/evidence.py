"""What the rows of a published version say about a field: shares of values, sums, products.

Shares are over all current rows. Sums and products are over a sample, in exact decimals.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import permutations, product
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core.parse import NUMBER, parse_number
from pipelines.finance.currencies import CODES, SPACES, minor_unit, read_code
from pipelines.finance.mapping import FIELD_PATH
from pipelines.finance.reconcile.roles import DAY, Column, read_columns

MAPPABLE: Final = re.compile(rf"(?!.*\[\].*\[\]){FIELD_PATH}").match  # lists in lists are no lines
LABELS: Final = ("VARCHAR", "BIGINT")
FEW: Final = 20  # different values that a status or kind has at most
SOME: Final = 0.5  # of values that differ: what counts from 1 in every record refers to nothing
FEWEST_ROWS: Final = 5  # that show a product
EXACT_DIGITS: Final = 100  # the product of two decimals has 76
KEYS: Final = """
SELECT loads.stream, max_by(loads.key, loads.valid_time) FROM meta.loads AS loads GROUP BY ALL
"""
# The first condition of each is fast, and spares most values the second one.
CODE: Final = f"""
CASE WHEN length({{0.value}}) BETWEEN 3 AND 9
    THEN upper(trim({{0.value}}, '{SPACES}')) IN {tuple(sorted(CODES))} END
"""
TIME: Final = f"""
CASE WHEN {{0.value}} BETWEEN '0' AND ':' THEN {DAY.format(value="{0.value}")} IS NOT NULL END
"""
NUMBER_TEXT: Final = f"""
CASE WHEN {{0.value}} BETWEEN '-' AND ':' THEN regexp_full_match({{0.value}}, '{NUMBER}') END
"""
COUNTS: Final = """
count({0.value}), approx_count_distinct({0.value}), count({0.value}) FILTER ({1}),
count({0.value}) FILTER ({2}), count({0.value}) FILTER ({3})
"""
SHARES: Final = """
SELECT count(*), count(DISTINCT {0.row}._connection), {1}
FROM {0.source}
"""
VALUES: Final = """
SELECT DISTINCT {0.row}._connection AS connection, CAST({0.value} AS VARCHAR) AS value
FROM {0.source}
WHERE {0.value} IS NOT NULL
"""
FOUND: Final = """
SELECT count(*)
FROM (
    SELECT {0.row}._connection AS connection, CAST({0.value} AS VARCHAR) AS value FROM {0.source}
) AS one
SEMI JOIN ({1}) AS target ON target.connection = one.connection AND target.value = one.value
"""
SAMPLED: Final = "USING SAMPLE reservoir(2000 ROWS) REPEATABLE (1)"
LINES: Final = """
JOIN {0.source} ON line._connection = record._connection AND line._parent_key = record._key
"""
SUMS: Final = f"""
SELECT list({{0.value}}), {{1}}
FROM (FROM current.{{0.stream}} {SAMPLED}) AS record {LINES}
GROUP BY record._connection, record._key, {{1}}
"""
# Sampled usage with the lines that name it, and each partner's usage and bills.
BILLED_USAGE: Final = f"""
SELECT {{currency}}, [{{used}}], list({{billed}})
FROM (FROM current.usage {SAMPLED}) AS record
JOIN {{source}} ON line._connection = record._connection
    AND CAST({{line_usage}} AS VARCHAR) = CAST({{id}} AS VARCHAR)
GROUP BY record._connection, record._key, {{currency}}, {{used}}
"""
AGREEING: Final = f"""
SELECT {{used}}, {{billed}}
FROM (FROM current.usage {SAMPLED}) AS record
JOIN {{source}} ON line._connection = record._connection
    AND CAST({{line_usage}} AS VARCHAR) = CAST({{id}} AS VARCHAR)
GROUP BY record._connection, record._key
"""
TOTALS: Final = """
SELECT used.currency, used.amounts, billed.amounts
FROM (
    SELECT CAST({} AS VARCHAR) AS partner, {} AS currency, list({}) AS amounts
    FROM (FROM current.usage) AS record GROUP BY ALL
) AS used
JOIN (
    SELECT CAST({} AS VARCHAR) AS partner, {} AS currency, list({}) AS amounts
    FROM (FROM current.billing) AS record GROUP BY ALL
) AS billed USING (partner, currency)
USING SAMPLE reservoir(200 ROWS) REPEATABLE (1)
"""
ROWS: Final = "SELECT {1} FROM current.{0.stream} AS record {2} " + SAMPLED


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
        found = [*answers]
        return cls(sum(found), len(found))

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
        self.shares: dict[Column, dict[str, Share]] = {}
        columns = [each for each in read_columns(db) if MAPPABLE(each.path)]
        for table in dict.fromkeys(each.table for each in columns):
            self._measure([each for each in columns if each.table == table])

    def _measure(self, columns: Sequence[Column]) -> None:
        """Read a table once for the shares of all of its columns."""
        counts = ", ".join(map(_counts, columns))
        ((rows, connections, *found),) = self._rows(SHARES.format(columns[0], counts))
        for at, column in enumerate(columns if rows else ()):
            values, distinct, codes, times, numbers = found[5 * at : 5 * at + 5]
            is_few = column.type == "VARCHAR" and distinct <= FEW
            self.shares[column] = {
                "filled": Share(values, rows),
                "labels": Share(values if column.type in LABELS else 0, rows),
                "numbers": Share(numbers, rows),
                "codes": Share(codes, values),
                "times": Share(times, values),
                "few": Share(values if is_few else 0, values),
                "different": Share(min(distinct * connections, values), values),  # about
            }

    def is_filled(self, column: Column) -> bool:
        """Whether every row has a value."""
        filled = self.shares[column]["filled"]
        return filled.part == filled.whole

    def is_unique(self, column: Column) -> bool:
        """Whether every row has a text or a whole number, and all differ in a connection."""
        labels, different = (self.shares[column][kind] for kind in ("labels", "different"))
        if labels.part < labels.whole or different.value < SOME:
            return False
        count = f"SELECT count(*) FROM ({VALUES.format(column)}) AS one"
        return self._rows(count) == [(labels.whole,)]

    def found(self, column: Column, target: Column) -> Share:
        """Return the share of values that are values of another column in the same connection."""
        if column.type not in LABELS:
            return Share(0, 0)
        ((part,),) = self._rows(FOUND.format(column, VALUES.format(target)))
        return Share(part, self.shares[column]["filled"].part)

    def values(self, column: Column) -> list[str]:
        """Return the different values of a column that has few, in their order."""
        return sorted({value for _connection, value in self._rows(VALUES.format(column))})

    def sums(self, line: Column, totals: Sequence[Column]) -> dict[Column, Share]:
        """Return for which share of sampled bills a column of lines adds up to each of bills."""
        bills = self._rows(SUMS.format(line, ", ".join(each.value for each in totals)))
        with localcontext(prec=EXACT_DIGITS):
            sums = [_sum(amounts) for amounts, *_totals in bills]
        return {
            total: Share.of(
                _number(bill[at]) == added
                for bill, added in zip(bills, sums, strict=True)
                if bill[at] is not None
            )
            for at, total in enumerate(totals, start=1)
        }

    def billed_usage(self, found: Mapping[str, Column]) -> Iterator[Pair]:
        """Yield sampled usage with the sum of the lines that name it; nothing without the roles."""
        roles = ("usage.id", "usage.amount", "usage.currency")
        lines = ("billing.line_usage", "billing.line_amount")
        if {*roles, *lines} <= found.keys():
            id_, used, currency, line_usage, billed = (found[each] for each in (*roles, *lines))
            query = BILLED_USAGE.format(
                id=id_.value,
                used=used.value,
                currency=currency.value,
                line_usage=line_usage.value,
                billed=billed.value,
                source=billed.source,
            )
            yield from self._pairs(query)

    def agreeing(
        self, usage: tuple[Column, list[Column]], lines: tuple[Column, list[Column]]
    ) -> dict[tuple[Column, Column], Share]:
        """Return for which share of sampled usage a column of lines adds up to one of usage.

        Each side is the column that identifies usage, and numbers. Zeros and ones show nothing.
        """
        (key, used), (reference, billed) = usage, lines
        query = AGREEING.format(
            id=key.value,
            line_usage=reference.value,
            source=reference.source,
            used=", ".join(f"any_value({each.value})" for each in used) or "NULL",
            billed=", ".join(f"list({each.value})" for each in billed) or "NULL",
        )
        rows, found = self._rows(query), dict[tuple[Column, Column], Share]()
        with localcontext(prec=EXACT_DIGITS):
            for (x, one), (y, other) in product(enumerate(used), enumerate(billed, len(used))):
                pairs = [(_number(row[x]), _sum(row[y])) for row in rows]
                telling = [pair for pair in pairs if pair[0] and pair[0] != 1]
                share = Share.of(amount == added for amount, added in telling)
                if share.whole >= FEWEST_ROWS:
                    found[one, other] = share
        return found

    def totals(self, found: Mapping[str, Column]) -> Iterator[Pair]:
        """Yield the totals of partners by currency; nothing without the roles."""
        roles = [
            f"{side}.{name}"
            for side in ("usage", "billing")
            for name in ("partner", "currency", "amount")
        ]
        if {*roles} <= found.keys():
            yield from self._pairs(TOTALS.format(*(found[each].value for each in roles)))

    def _pairs(self, query: str) -> Iterator[Pair]:
        with localcontext(prec=EXACT_DIGITS):
            for currency, *sides in self._rows(query):
                used, billed = map(_sum, sides)
                yield Pair(read_code(currency), used, billed)

    def products(
        self, numbers: Sequence[Column], currency: Column | None
    ) -> dict[tuple[Column, ...], Share]:
        """Return in which share of sampled rows two columns multiply to a third, in both orders.

        A product is exact to half a minor unit. Zeros and factors of 1 show nothing.
        """
        if not numbers:
            return {}
        values = ", ".join(each.value if each else "NULL" for each in (*numbers, currency))
        lines = LINES.format(numbers[0]) if numbers[0].row == "line" else ""
        sent = self._rows(ROWS.format(numbers[0], values, lines))
        rows = [(*map(_number, row), code) for *row, code in sent]
        found = dict[tuple[Column, ...], Share]()
        with localcontext(prec=EXACT_DIGITS):
            for (x, one), (y, two), (z, amount) in permutations(enumerate(numbers), 3):
                if x > y:
                    continue
                share = Share.of(
                    abs(row[x] * row[y] - row[z]) * 2 <= minor_unit(read_code(row[-1]))
                    for row in rows
                    if row[x] and row[y] and row[z] and 1 not in {row[x], row[y]}
                )
                if share.whole >= FEWEST_ROWS:
                    found[one, two, amount] = found[two, one, amount] = share
        return found

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._db.execute(query).fetchall()


def _counts(column: Column) -> str:
    if column.type == "VARCHAR":
        tests = (each.format(column) for each in (CODE, TIME, NUMBER_TEXT))
        return COUNTS.format(column, *tests)
    is_time = column.type.startswith(("DATE", "TIMESTAMP"))
    return COUNTS.format(column, "false", is_time, column.is_number)


def _number(value: Any) -> Any:
    """Return what a text says as a number; other values as they are."""
    return parse_number(value) if isinstance(value, str) else value


def _sum(values: Iterable[Any]) -> Decimal:
    """Return the sum of the numbers among values; those that say none count nothing."""
    return sum(filter(None, map(_number, values)), Decimal(0))
