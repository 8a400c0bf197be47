"""Values of own books: the fast reading of usual spellings says what the slow one says of each."""

from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.core.parse import EXACT
from pipelines.finance.currencies import SPACES
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.reconcile.own.memory import ROLES
from pipelines.finance.reconcile.own.rows import OwnTable, Scales
from pipelines.finance.reconcile.spelled import Kind, read_value
from tests.effort import EFFORT
from tests.reconcile.own import METER

ZONE = ZoneInfo("Europe/Berlin")
SOURCE = parse_mapping(METER).own["meter"]
DIGITS = st.integers(0, 20)
NUMBERS = st.builds(
    lambda value, places: f"{Decimal(value).scaleb(-places):f}",
    st.integers(-(10**22), 10**22),
    DIGITS,
)
SPELLINGS = st.one_of(
    NUMBERS,
    st.builds(lambda number, zeros: f"{number}{'0' * zeros}", NUMBERS, DIGITS),
    st.from_regex(r"\A-?[0-9]{1,20}([.][0-9]{1,12})?([eE][+-]?[0-9]{1,2})?\Z"),
    st.sampled_from(
        ["1,5", "1_000", "0x1A", "007", "+5", ".5", "5.", "-0", "1e3", "NaN", "\u0661", "-"]
    ),
)
DAYS = st.dates().map(str)
CLOCK = "[01][0-9]:[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
PERIODS = st.one_of(
    DAYS,
    DAYS.map(lambda day: day[:7]),
    st.builds(
        "{}{}{}{}".format,
        DAYS,
        st.sampled_from(["T", " ", "t"]),
        st.from_regex(rf"\A{CLOCK}\Z"),
        st.sampled_from(["", "Z", "+02:00", "+23:59", "-18:00", "+0530", " UTC", "-11"]),
    ),
    st.sampled_from(["2026-02-30", "2026-13", "30/09/2026", "0000-01-01", "20260930", "2026-9-1"]),
)
AROUND = st.sampled_from(["", " ", "\t", "\u00a0", "\ufeff"])


# As many digits as the table holds: 18 before the point and 9 behind it.
HELD = st.integers(0, 9).flatmap(
    lambda places: st.integers(1 - 10 ** (18 + places), 10 ** (18 + places) - 1).map(
        lambda value: Decimal(value).scaleb(-places)
    )
)
SERVICE = "CREATE TEMP VIEW service AS SELECT 'EUR' AS currency"


def insert(db: duckdb.DuckDBPyConnection, table: OwnTable, role: str, texts: list[str]) -> None:
    """Read texts of a role into the table."""
    columns: dict[str, Any] = {f"{name}_text": pa.nulls(len(texts), pa.string()) for name in ROLES}
    columns["id_text"] = pa.array(["x"] * len(texts), pa.string())
    columns["currency_text"] = pa.array(["EUR"] * len(texts), pa.string())
    columns[f"{role}_text"] = pa.array(texts, pa.string())
    columns["row"] = pa.array(range(len(texts)), pa.int64())
    db.execute(f"SET TimeZone = '{ZONE}'")
    table.create(db)
    db.from_arrow(pa.table(columns)).query("added", table.insert("FROM added", 0))
    table.read_others(db)


def read(role: str, texts: list[str], column: str) -> list[Any]:
    """Return what texts of a role say; the table has 9 digits behind the point."""
    table = OwnTable("own", SOURCE, ZONE, Scales(9, 9))
    with duckdb.connect() as db:
        insert(db, table, role, texts)
        return [
            value
            for (value,) in db.execute(f"SELECT {column} FROM own_read ORDER BY row").fetchall()
        ]


@pytest.mark.long
@settings(max_examples=20 * EFFORT, deadline=None)
@given(st.lists(st.tuples(AROUND, SPELLINGS, AROUND), min_size=1, max_size=50))
def test_an_amount_is_exact_or_not_understood(spelled: list[tuple[str, str, str]]) -> None:
    found = read("amount", ["".join(parts) for parts in spelled], "amount")
    for (_before, text, _after), value in zip(spelled, found, strict=True):
        number = read_value(Kind.NUMBER, text.strip(SPACES), ZONE)
        fits = isinstance(number, Decimal) and abs(number) < 10**18
        if fits and number == round(Decimal(number), 9):  # type: ignore[arg-type]
            assert value == number
        else:
            assert value is None, (text, value)


@pytest.mark.long
@settings(max_examples=20 * EFFORT, deadline=None)
@given(st.lists(HELD, min_size=1, max_size=50), st.integers(0, 9), st.sampled_from([1, 100]))
def test_no_digit_of_an_amount_is_lost_where_both_sides_meet(
    amounts: list[Decimal], scale: int, minor: int
) -> None:
    mapping = METER if minor == 1 else f'{METER}amount_unit = "minor"\n'
    table = OwnTable("own", parse_mapping(mapping).own["meter"], ZONE, Scales(9, 9))
    with duckdb.connect() as db:
        insert(db, table, "amount", [f"{amount:f}" for amount in amounts])
        db.execute(SERVICE)
        table.create_view(db, "service", table.scales(db, Scales(0, scale)))
        compared = db.execute("SELECT amount FROM own ORDER BY row").fetchall()
    assert [EXACT.multiply(value, Decimal(minor)) for (value,) in compared] == amounts


@pytest.mark.long
@settings(max_examples=20 * EFFORT, deadline=None)
@given(st.lists(st.tuples(AROUND, PERIODS, AROUND), min_size=1, max_size=50))
def test_a_period_is_its_month_or_not_understood(spelled: list[tuple[str, str, str]]) -> None:
    found = read("period", ["".join(parts) for parts in spelled], "month")
    for (_before, text, _after), value in zip(spelled, found, strict=True):
        day: Any = read_value(Kind.DAY, text, ZONE)
        assert value == (day.replace(day=1) if day else None), text
