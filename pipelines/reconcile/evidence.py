"""What the rows of a published version say about a field: shares of values, sums, products.

Shares are over all current rows. Sums and products are over a sample that is spread over the table,
in exact decimals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import permutations
from typing import Any, Final, NamedTuple

import duckdb
from pydantic import TypeAdapter, ValidationError

from pipelines.config.mapping import FieldPath
from pipelines.core.currencies import CODES, minor_unit
from pipelines.core.text import quote_identifier
from pipelines.reconcile.roles import Column, read_columns

ITEM: Final = "[]"
SAMPLE_ROWS: Final = 4_000
FIRST_ROWS: Final = 300  # of the sample: decide which products are worth all of it
WIDTH: Final = 12  # number columns of a table that are tried; all combinations of three are
FEW: Final = 20  # different values that a status or kind has at most
FEWEST_ROWS: Final = 5  # that show a product
HASHES: Final = 1_000_000  # that are in memory at once; 128 MB hold twice as many
ESTIMATE: Final = 0.8  # of the true number: what approx_count_distinct returns at least
EXACT_DIGITS: Final = 100  # the product of two decimals has 76
KEY: Final = """
SELECT max_by(loads.key, loads.valid_time) FROM meta.loads AS loads WHERE loads.stream = ?
"""
FOUND: Final = """
SELECT count(*) FROM ({values}) AS one WHERE one.hash IN ({known})
"""
UNIQUE: Final = """
SELECT count(DISTINCT one.hash) FROM ({values}) AS one WHERE one.hash % ? = ?
"""
HASHED: Final = """
SELECT hash(row._connection, CAST(row.{column} AS VARCHAR)) AS hash
FROM current.{table} AS row
WHERE row.{column} IS NOT NULL
"""
SUMS: Final = """
SELECT lines.added, {totals}
FROM current.billing AS bill
JOIN (
    SELECT item._connection, item._parent_key, sum(item.{line}) AS added
    FROM current.{table} AS item
    WHERE hash(item._connection, item._parent_key) % {step} = 0
    GROUP BY item._connection, item._parent_key
) AS lines ON lines._connection = bill._connection AND lines._parent_key = bill._key
WHERE hash(bill._connection, bill._key) % {step} = 0
LIMIT {rows}
"""
PRODUCTS: Final = """
SELECT {currency}, {numbers}
FROM (
    SELECT item.* FROM current.{table} AS item WHERE hash({identity}) % {step} = 0 LIMIT {rows}
) AS row
{join}
"""
OF_BILL: Final = """
JOIN current.billing AS bill ON bill._connection = row._connection AND bill._key = row._parent_key
"""
TIME: Final = "coalesce(TRY_CAST({0} AS DATE), TRY_CAST({0} || '-01' AS DATE)) IS NOT NULL"
LABELS: Final = ("VARCHAR", "BIGINT")
Numbers = Sequence[Decimal | int | None]
PATH: Final[TypeAdapter[str]] = TypeAdapter(FieldPath)


@dataclass(frozen=True)
class Share:
    """So many of so many. Written without rounding up: only all of them are 100 %."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """The share from 0 to 1; 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0

    def __str__(self) -> str:
        permille = self.part * 1000 // self.whole if self.whole else 0
        percent = "100" if permille == 1000 else f"{permille // 10}.{permille % 10}"  # noqa: PLR2004
        return f"{self.part:,} of {self.whole:,} ({percent} %)"


class Profile(NamedTuple):
    """Rows and connections of a table; values of a column, and about how many of them differ."""

    rows: int
    connections: int
    values: int
    distinct: int


class Product(NamedTuple):
    """Three columns: the third is the product of the others in a share of the sampled rows."""

    columns: tuple[Column, ...]
    share: Share

    def turned(self) -> "Product":
        """Return the same with the factors the other way round."""
        one, two, amount = self.columns
        return self._replace(columns=(two, one, amount))

    def __str__(self) -> str:
        one, two, amount = (each.path for each in self.columns)
        return f"{one} x {two} = {amount}"


class Evidence:
    """Counts in the rows of `current`. `columns` are those that a mapping can name."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self._profiles: dict[Column, Profile] = {}
        mappable = [each for each in read_columns(db) if _is_mappable(each.path)]
        for table in {each.table for each in mappable}:
            self._measure([each for each in mappable if each.table == table])
        self.columns = [each for each in mappable if self._profiles[each].rows]

    def _measure(self, columns: Sequence[Column]) -> None:
        """Read a table once for the profiles of all of its columns."""
        names = [quote_identifier(each.name) for each in columns]
        counts = ", ".join(f"count({name}), approx_count_distinct({name})" for name in names)
        table = quote_identifier(columns[0].table)
        every = "count(*), count(DISTINCT _connection)"
        rows, connections, *found = self._row(f"SELECT {every}, {counts} FROM current.{table}")
        profiles = zip(columns, found[::2], found[1::2], strict=True)
        self._profiles |= {
            each: Profile(rows, connections, *counted) for each, *counted in profiles
        }

    def key(self, stream: str) -> str | None:
        """Return the primary key that the newest scan of a list had."""
        key = self._row(KEY, [stream])[0]
        return None if key is None else str(key)

    def filled(self, column: Column) -> Share:
        """Return the share of rows that have a value."""
        profile = self._profiles[column]
        return Share(profile.values, profile.rows)

    def labels(self, column: Column) -> Share:
        """Return the share of rows that have a text or a whole number."""
        return self.filled(column) if column.type in LABELS else Share(0, 0)

    def few(self, column: Column) -> Share:
        """Return the share of values that are texts, few of them different: all or none."""
        _, _, values, distinct = self._profiles[column]
        return Share(values if column.type == "VARCHAR" and distinct <= FEW else 0, values)

    def hardly_repeats(self, column: Column) -> bool:
        """Whether most values differ: what counts from 1 in every record refers to nothing."""
        _, connections, values, distinct = self._profiles[column]
        return distinct * connections * 2 >= values > 0

    def codes(self, column: Column) -> Share:
        """Return the share of values that are ISO 4217 codes; none of too many different ones."""
        _, _, values, distinct = self._profiles[column]
        if column.type != "VARCHAR" or distinct > 2 * len(CODES):
            return Share(0, values)
        known = (rows for value, rows in self.values(column).items() if value in CODES)
        return Share(sum(known), values)

    def times(self, column: Column) -> Share:
        """Return the share of values that are dates, times or months such as 2026-09."""
        name, table = quote_identifier(column.name), quote_identifier(column.table)
        is_time = str(column.type.startswith(("DATE", "TIMESTAMP")))
        condition = TIME.format(name) if column.type == "VARCHAR" else is_time
        counts = f"count({name}) FILTER ({condition}), count({name})"
        return Share(*self._row(f"SELECT {counts} FROM current.{table}"))

    def found(self, column: Column, target: Column) -> Share:
        """Return the share of values that are values of another column in the same connection."""
        if column.type not in LABELS:
            return Share(0, 0)
        part, (values, known) = 0, (_hashed(column), _hashed(target))
        parts = self._profiles[target].values // HASHES + 1
        for number in range(parts):
            some = f"{known} AND hash % {parts} = {number}"
            part += self._row(FOUND.format(values=values, known=some))[0]
        return Share(part, self._profiles[column].values)

    def referring(self, key: Column) -> Share:
        """Return the largest share of values in another list that are those of a key."""
        others = [each for each in self.columns if each.stream != key.stream]
        shares = [self.found(each, key) for each in others if self.hardly_repeats(each)]
        return max(shares, key=lambda each: each.value, default=Share(0, 0))

    def is_unique(self, column: Column) -> bool:
        """Whether every row has a text or a whole number, and all differ in a connection."""
        rows, connections, values, distinct = self._profiles[column]
        if column.type not in LABELS or values < rows or distinct * connections < rows * ESTIMATE:
            return False
        parts, query = rows // HASHES + 1, UNIQUE.format(values=_hashed(column))
        counts = [self._row(query, [parts, number])[0] for number in range(parts)]
        return bool(sum(counts) == rows)

    def values(self, column: Column) -> dict[str, int]:
        """Return the different values of a column that has few, and in how many rows each is."""
        name, table = quote_identifier(column.name), quote_identifier(column.table)
        query = f"SELECT {name}, count({name}) FROM current.{table} GROUP BY ALL ORDER BY ALL"
        found = self._db.execute(query).fetchall()
        return {value: rows for value, rows in found if value is not None}

    def sums(self, line: Column, totals: Sequence[Column]) -> dict[Column, Share]:
        """Return for which share of sampled bills a column of lines adds up to each of bills."""
        query = SUMS.format(
            totals=_listed("bill.{}", totals),
            line=quote_identifier(line.name),
            table=quote_identifier(line.table),
            step=self._step(totals[0]),
            rows=SAMPLE_ROWS,
        )
        try:
            rows = self._db.execute(query).fetchall()
        except duckdb.OutOfRangeException:  # a sum of more than 38 digits is no amount
            return {}
        found = {}
        for at, total in enumerate(totals, 1):
            known = [(row[0], row[at]) for row in rows if None not in (row[0], row[at])]
            found[total] = Share(sum(added == billed for added, billed in known), len(known))
        return found

    def products(self, numbers: Sequence[Column], currency: Column | None) -> list[Product]:
        """Return which columns are the product of two others, to half a minor unit.

        A product that does not hold in half of the first rows is not looked at further.
        """
        numbers = numbers[:WIDTH]
        rows = self._sample(numbers, currency) if numbers else []
        products = [
            Product(tuple(numbers[at] for at in places), _multiplied(rows, places))
            for places in permutations(range(len(numbers)), 3)
            if places[0] < places[1] and _multiplied(rows[:FIRST_ROWS], places).value > 1 / 2
        ]
        return [each for each in products if each.share.whole >= FEWEST_ROWS]

    def _sample(
        self, numbers: Sequence[Column], currency: Column | None
    ) -> list[tuple[Decimal, Numbers]]:
        """Return the minor unit and the numbers of some rows, spread over the table."""
        is_line = ITEM in numbers[0].path
        owner = "bill" if is_line else "row"
        query = PRODUCTS.format(
            currency=f"{owner}.{quote_identifier(currency.name)}" if currency else "NULL",
            numbers=_listed("row.{}", numbers),
            table=quote_identifier(numbers[0].table),
            identity=f"item._connection, item.{'_parent_key, item._index' if is_line else '_key'}",
            step=self._step(numbers[0]),
            rows=SAMPLE_ROWS,
            join=OF_BILL if is_line else "",
        )
        rows = self._db.execute(query).fetchall()
        return [(minor_unit(code), found) for code, *found in rows]

    def _step(self, column: Column) -> int:
        """Return of how many rows one is in a sample."""
        return -(-self._profiles[column].rows // SAMPLE_ROWS)

    def _row(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        (row,) = self._db.execute(query, values).fetchall()
        return tuple(row)


def _is_mappable(path: str) -> bool:
    try:
        PATH.validate_python(path)
    except ValidationError:
        return False
    return path.count(ITEM) <= 1  # lists in lists are no lines


def _hashed(column: Column) -> str:
    """Return a query for the values of a column: as hashes, a million of them fit in 50 MB."""
    names = {"column": quote_identifier(column.name), "table": quote_identifier(column.table)}
    return HASHED.format(**names)


def _listed(pattern: str, columns: Iterable[Column]) -> str:
    return ", ".join(pattern.format(quote_identifier(each.name)) for each in columns)


def _multiplied(rows: Sequence[tuple[Decimal, Numbers]], places: Sequence[int]) -> Share:
    """Return the share of rows where the product is exact; zeros and factors of 1 show nothing."""
    part = whole = 0
    with localcontext(prec=EXACT_DIGITS):
        for unit, numbers in rows:
            one, two, amount = (numbers[place] for place in places)
            if not one or not two or not amount or 1 in (one, two):
                continue
            whole += 1
            part += abs(Decimal(one) * two - amount) * 2 <= unit
    return Share(part, whole)
