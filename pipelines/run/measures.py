"""What the rows say for a role: shares of rows, each over every row or over a spread of them.

Here: counting, in SQL and with exact decimals; nothing is decided. Not here: which field gets which
role (proposing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import duckdb

from pipelines.run.fields import Field
from pipelines.settings import currencies
from pipelines.warehouse.database import listed, quoted, scalar

SPREAD = 4_000  # rows that are multiplied; of a table with more, every so many
FIRST = 300  # of these, for all combinations
TRIVIAL = {Decimal(0), Decimal(1)}  # factors that show nothing
ENOUGH = 5  # rows that show something
JOINED = "(SELECT DISTINCT _connection, CAST({0} AS VARCHAR) AS value FROM {1})"


@dataclass(frozen=True)
class Share:
    """So many of so many; `distinct` is about how many values they are, where that was counted."""

    part: int
    whole: int
    distinct: int = 0

    @property
    def value(self) -> float:
        """The share from 0 to 1; 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0

    @property
    def words(self) -> str:
        """Say it; what is not all is never rounded to 100 %."""
        percent = self.part * 10_000 // self.whole if self.whole else 0
        return f"{self.part:,} of {self.whole:,} ({percent // 100}.{percent % 100:02} %)"


@dataclass(frozen=True)
class Product:
    """A field that is the product of two others, and in how many rows."""

    factors: tuple[Field, Field]
    amount: Field
    share: Share


def rows(field: Field) -> str:
    """Return the rows that a field is of; records that the last reading lacked are left out."""
    table = quoted("current", field.table)
    return table if field.inner else f"(SELECT * FROM {table} WHERE missing_since IS NULL)"


def filled(database: duckdb.DuckDBPyConnection, field: Field) -> Share:
    """Return in how many rows a field has a value."""
    name = f"nullif(trim({field.sql}), '')" if field.textual else field.sql
    return _share(database, f"SELECT count({name}), count(*), 0 FROM {rows(field)}")


def differing(database: duckdb.DuckDBPyConnection, field: Field) -> Share:
    """Return how many different values a field has, to the number of rows."""
    whole = filled(database, field)
    if whole.part < whole.whole:
        return Share(0, whole.whole)
    values = f"SELECT DISTINCT _connection, {field.sql} FROM {rows(field)}"
    return Share(scalar(database, f"SELECT count(*) FROM ({values})"), whole.whole)


def found(database: duckdb.DuckDBPyConnection, field: Field, target: Field) -> Share:
    """Return how many values of a field are those of another, of the same connection."""
    value = f"CAST(one.{field.sql} AS VARCHAR)"
    known = JOINED.format(target.sql, rows(target))
    return _share(
        database,
        "SELECT count(other.value), count(*), approx_count_distinct(other.value) "
        f"FROM {rows(field)} AS one LEFT JOIN {known} AS other "
        f"ON one._connection = other._connection AND {value} = other.value "
        f"WHERE one.{field.sql} IS NOT NULL",
    )


def dates(database: duckdb.DuckDBPyConnection, field: Field) -> Share:
    """Return how many values of a field can be read as a date or a time."""
    name = field.sql
    if field.moment:
        return _share(database, f"SELECT count({name}), count({name}), 0 FROM {rows(field)}")
    date = f"coalesce(TRY_CAST({name} AS TIMESTAMPTZ), TRY_CAST({name} || '-01' AS TIMESTAMPTZ))"
    return _share(database, f"SELECT count({date}), count({name}), 0 FROM {rows(field)}")


def codes(database: duckdb.DuckDBPyConnection, field: Field) -> Share:
    """Return how many values of a field are currencies of ISO 4217."""
    known, name = listed(sorted(currencies.CODES)), field.sql
    code = f"CASE WHEN strlen({name}) = 3 THEN {name} IN ({known}) END"  # most are longer: quick
    query = f"SELECT count(*) FILTER ({code}), count({name}), 0 FROM {rows(field)}"
    return _share(database, query)


def one_each(database: duckdb.DuckDBPyConnection, field: Field, other: Field) -> Share:
    """Return how many values of a field come with one value of another only."""
    inner = (
        f"SELECT count(DISTINCT {other.sql}) AS others FROM {rows(field)} WHERE {field.sql} IS NOT "
        f"NULL GROUP BY _connection, {field.sql}"
    )
    return _share(database, f"SELECT count(*) FILTER (others <= 1), count(*), 0 FROM ({inner})")


def not_before(database: duckdb.DuckDBPyConnection, field: Field, other: Field) -> Share:
    """Return in how many rows one time is not before another."""
    one, two = (f"TRY_CAST({each.sql} AS TIMESTAMPTZ)" for each in (field, other))
    return _share(
        database, f"SELECT count(*) FILTER ({one} >= {two}), count({one}), 0 FROM {rows(field)}"
    )


def equal(database: duckdb.DuckDBPyConnection, pairs: Sequence[tuple[Field, Field]]) -> Share:
    """Return in how many rows that refer to a row of another table a field equals the other's.

    The first pair is the reference, the second what is compared.
    """
    (refers, key), (one, other) = pairs
    return _share(
        database,
        f"SELECT count(*) FILTER (a.{one.sql} = b.{other.sql}), count(*), 0 FROM {rows(one)} AS a "
        f"JOIN {rows(other)} AS b ON a._connection = b._connection "
        f"AND CAST(a.{refers.sql} AS VARCHAR) = CAST(b.{key.sql} AS VARCHAR)",
    )


def sums(database: duckdb.DuckDBPyConnection, item: Field, total: Field) -> Share:
    """Return for how many records the items of an array add up to a field."""
    keys = ", ".join(map(quoted, shared(database, item, total)))
    items = f"SELECT {keys}, sum({item.sql}) AS added FROM {rows(item)} GROUP BY ALL"
    return _share(
        database,
        f"SELECT count(*) FILTER (added = {total.sql}), count({total.sql}), 0 "
        f"FROM {rows(total)} JOIN ({items}) USING ({keys})",
    )


def products(
    database: duckdb.DuckDBPyConnection, numbers: Sequence[Field], currency: Field | None
) -> list[Product]:
    """Return which fields of a table are the product of two others, rounded to a minor unit.

    The best first. A first look at few rows decides what is worth a look at more.
    """
    if len(numbers) < 3:  # noqa: PLR2004 two factors and their product
        return []
    values = _spread(database, numbers, currency)
    tried = [
        (one, two, amount)
        for one, two in combinations(range(len(numbers)), 2)
        for amount in range(len(numbers))
        if amount not in {one, two}
    ]
    likely = [each for each in tried if _multiplied(values[:FIRST], each).value > 1 / 2]
    told = [(each, _multiplied(values, each)) for each in likely]
    return [
        Product((numbers[one], numbers[two]), numbers[amount], share)
        for (one, two, amount), share in sorted(told, key=lambda each: -each[1].value)
        if share.whole >= ENOUGH
    ]


def shared(database: duckdb.DuckDBPyConnection, item: Field, outer: Field) -> list[str]:
    """Return by which columns the items of an array lead to their record."""
    own = database.sql(f"FROM {quoted('current', item.table)} LIMIT 0").columns
    records = set(database.sql(f"FROM {quoted('current', outer.table)} LIMIT 0").columns)
    until = own.index("idx") if "idx" in own else 0  # what is before it was the record's
    return [each for each in own[:until] if each in records]


def _spread(
    database: duckdb.DuckDBPyConnection, numbers: Sequence[Field], currency: Field | None
) -> list[tuple[Decimal, list[Decimal | None]]]:
    """Return some rows, spread over the table: one minor unit of the currency, and the numbers."""
    table = quoted("current", numbers[0].table)
    step = max(1, scalar(database, f"SELECT count(*) FROM {table}") // SPREAD)
    names = ", ".join(f"one.{each.sql}" for each in numbers)
    source, code = f"{table} AS one", "NULL" if currency is None else f"one.{currency.sql}"
    if currency is not None and currency.table != numbers[0].table:
        code = f"other.{currency.sql}"
        keys = ", ".join(map(quoted, shared(database, numbers[0], currency)))
        source += f" JOIN {quoted('current', currency.table)} AS other USING ({keys})"
    query = f"SELECT {code}, {names} FROM {source} WHERE one.rowid % {step} = 0"
    return [
        (
            currencies.unit(code or ""),
            [None if each is None else Decimal(each) for each in found],
        )
        for code, *found in database.execute(query).fetchall()
    ]


def _multiplied(
    values: Sequence[tuple[Decimal, list[Decimal | None]]], which: tuple[int, int, int]
) -> Share:
    """Return in how many rows the product is within half a minor unit, of those that show it."""
    part = whole = 0
    for unit, numbers in values:
        one, two, amount = (numbers[place] for place in which)
        if one is None or two is None or amount is None or {one, two} & TRIVIAL:
            continue
        whole += 1
        part += abs(one * two - amount) * 2 <= unit
    return Share(part, whole)


def _share(database: duckdb.DuckDBPyConnection, query: str) -> Share:
    part, whole, distinct = database.execute(query).fetchall()[0]
    return Share(int(part), int(whole), int(distinct))


def same_month(
    database: duckdb.DuckDBPyConnection,
    reference: Field,
    key: Field,
    periods: tuple[Field, Field],
) -> Share:
    """Return how many items that refer to a row are billed in the month that the row is of."""
    used, billed = periods
    keys = ", ".join(map(quoted, shared(database, reference, billed)))
    one, two = (
        f"date_trunc('month', TRY_CAST({table}.{each.sql} AS TIMESTAMPTZ))"
        for table, each in (("a", used), ("b", billed))
    )
    return _share(
        database,
        f"SELECT count(*) FILTER ({one} = {two}), count(*), 0 FROM {rows(reference)} AS item "
        f"JOIN {rows(billed)} AS b USING ({keys}) JOIN {rows(used)} AS a "
        f"ON a._connection = b._connection "
        f"AND CAST(a.{key.sql} AS VARCHAR) = CAST(item.{reference.sql} AS VARCHAR)",
    )
