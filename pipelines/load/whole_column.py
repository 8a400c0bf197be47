"""What all values of a column together forbid, although its new type takes each of them.

Here: two texts that spell one number are no numbers, and some days are no times. Not here: single
values (`observe.py`).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.parse import parse_number, plain_text
from pipelines.core.text import quote_identifier
from pipelines.load.place import Place
from pipelines.load.values import single_values

# Rows that are read together.
ROWS_AT_ONCE: Final = 50_000
# A number that has a shorter spelling.
NOT_SHORTEST: Final = r"\.[0-9]*0$|[eE]|^-0(\.0+)?$"
# ISO 4217 has currencies with 0, 2, 3 and 4 digits behind the point.
MONEY: Final = re.compile(r"(?!-0$)-?[0-9]+(\.[0-9]{2,4})?")
# As TIME_BOUNDS: in any time zone of a session, Python can hold the times between.
HAS_EXTREME_DAY: Final = """
SELECT coalesce(max(history.{column}) >= DATE '9999-12-30'
    OR min(history.{column}) < DATE '0001-01-03', false)
FROM {table} AS history
"""
SELECT_TEXTS: Final = """
SELECT history.{column} FROM {table} AS history WHERE history.{column} IS NOT NULL
"""


def has_extreme_day(db: duckdb.DuckDBPyConnection, place: Place) -> bool:
    """Return whether a column of days holds one that no column of times can hold."""
    ((is_extreme,),) = db.execute(on_column(HAS_EXTREME_DAY, place)).fetchall()
    return bool(is_extreme)


def stored_texts(db: duckdb.DuckDBPyConnection, place: Place) -> Iterator[pa.Array]:
    """Yield the texts of a column, of every row version."""
    for batch in db.execute(on_column(SELECT_TEXTS, place)).to_arrow_reader(ROWS_AT_ONCE):
        yield single_values(batch.column(0))


def on_column(query: str, place: Place, **terms: str) -> str:
    """Return a query with `{table}` and `{column}` of a place in schema history."""
    table = f"history.{quote_identifier(place.table)}"
    return query.format(table=table, column=quote_identifier(place.name), **terms)


def have_two_spellings(place: Place, read: Callable[[], Iterable[pa.Array]]) -> bool:
    """Return whether two texts of a place spell one number, such as 1.10 and 1.1.

    Amounts of two currencies may, with the digits that each currency has: 90.00 and 90.000. `read`
    yields the texts; it is called twice, because nearly all of them are the shortest spelling and
    need not be kept.
    """
    # With the same number of digits behind the point, no two texts are one number.
    if len(place.seen.scales) <= 1:
        return False
    forbidden = list[str]()
    for shortest, longer in _longer_spellings(read()).items():
        is_money = all(map(_has_money_scale, longer))
        if len(longer) > 1 and not is_money:
            return True
        if not is_money or not _has_money_scale(shortest):
            forbidden.append(shortest)
    if not forbidden:
        return False
    forbidden_texts = pa.array(forbidden, pa.string())
    return any(pc.any(pc.is_in(texts, forbidden_texts)).as_py() for texts in read())


def _longer_spellings(batches: Iterable[pa.Array]) -> dict[str, set[str]]:
    """Return the number texts that have a shorter spelling, by the shortest one."""
    spellings = defaultdict[str, set[str]](set)
    for texts in batches:
        longer = texts.filter(pc.match_substring_regex(texts, NOT_SHORTEST))
        for text in pc.unique(longer).to_pylist():
            number = parse_number(text)
            spellings["0" if number is None else plain_text(number)].add(text)
    return spellings


def _has_money_scale(text: str) -> bool:
    """Return whether a number has as many digits behind the point as some currency has."""
    return MONEY.fullmatch(text) is not None
