"""Files are read back by other programs' readers and compared value by value."""

import csv
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape
from pyarrow import parquet
from xlsxwriter.workbook import Workbook

from pipelines.destinations import xlsx
from pipelines.settings import Home
from pipelines.warehouse import published
from tests.destinations.conftest import Exporting

WIDE = Decimal("12345678901234567890123456789012345.67")
DIGITS = st.builds(
    lambda whole, scale: Decimal(f"{whole}E-{scale}"),
    st.integers(1 - 10**38, 10**38 - 1),
    st.integers(1, 38),
)


def test_parquet_keeps_every_value_and_type(exporting: Exporting, home: Home) -> None:
    exporting(to="parquet")
    found = parquet.read_table(home.exports / "parquet" / "current.usage.parquet")
    with duckdb.connect(home.link, read_only=True) as database:
        database.execute("SET TimeZone = 'UTC'")
        assert found.equals(database.sql("FROM current.usage").to_arrow_table())
    assert found.schema.field("amount").type == pa.decimal128(38, 2)
    assert found.schema.field("used_at").type == pa.timestamp("us", "UTC")
    assert found["amount"][0].as_py() == WIDE


def test_csv_is_plain_digits_and_rfc_4180(exporting: Exporting, home: Home) -> None:
    made = exporting(to="csv")
    body = (home.exports / "csv" / "current.usage.csv").read_bytes()
    lines = body.split(b"\r\n")

    assert lines[1] == (
        b"default,12345678901234567890123456789012345.67,0.00000001,9007199254740993,true,"
        b"2026-11-21T10:00:00.123456Z,2026-11-21,=1+1,aa00"
    )
    assert lines[2].startswith(b"default,-0.10,-0.00000010,-5,false,1850-01-01T00:00:00.000000Z")
    assert lines[2].endswith(b'0001-01-01,"O\'Neil, ""Jr""",')
    assert lines[3] == (
        b'default,123456789012.30,12.50000000,0,,2026-03-28T23:59:59.000000Z,9999-12-31,"",'
    )
    assert lines[4] == b"default,,,,,,,,"
    with (home.exports / "csv" / "current.usage.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert rows[4]["name"] == "two\r\nlines 😀\t"
    assert len(rows) == 5
    notes = next(each.notes for each in made.written if each.table == "current.usage")
    assert notes[0].startswith("current.usage: 1 texts begin with = + - @")


def sheet(file: Path, number: int = 0) -> list[list[Any]]:
    """Return a sheet's cells as openpyxl reads them."""
    return [list(row) for row in openpyxl.load_workbook(file).worksheets[number].iter_rows()]


def test_xlsx_has_typed_numbers_times_and_no_formulas(exporting: Exporting, home: Home) -> None:
    made = exporting(to="xlsx")
    cells = sheet(home.exports / "xlsx" / "current.usage.xlsx")
    heads = [cell.value for cell in cells[0]]
    rows = [dict(zip(heads, row, strict=True)) for row in cells[1:]]

    assert heads[5] == "used_at (UTC)"
    assert [row["amount"].value for row in rows] == [str(WIDE), -0.1, 123456789012.3, None, 0]
    assert [row["amount"].data_type for row in rows] == ["s", "n", "n", "n", "n"]
    assert rows[1]["amount"].number_format == "0.00"
    assert [row["rate"].value for row in rows[:3]] == [1e-8, -1e-7, 12.5]
    assert [row["quantity"].value for row in rows[:3]] == ["9007199254740993", -5, 0]
    assert rows[0]["paid"].value is True
    assert rows[0]["used_at (UTC)"].value == datetime(2026, 11, 21, 10, 0, 0, 123000)  # noqa: DTZ001
    assert rows[1]["used_at (UTC)"].value == "1850-01-01 00:00:00+00:00"
    assert rows[0]["day"].value == datetime(2026, 11, 21)  # noqa: DTZ001
    assert (rows[0]["name"].value, rows[0]["name"].data_type) == ("=1+1", "s")
    assert rows[0]["name"].quotePrefix
    assert unescape(rows[4]["name"].value) == "two\r\nlines 😀\t"
    assert rows[0]["_digest"].value == "aa00"
    notes = next(each.notes for each in made.written if each.table == "current.usage")
    assert notes == (
        "current.usage: 3 numbers of more than 15 digits are written as text, whole",
        "current.usage: 1 times are cut to the millisecond, the finest that a cell holds",
        "current.usage: 2 times before 1901 are written as text",
    )


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "007", "_x0041_"])
def test_a_text_stays_a_text(tmp_path: Path, text: str) -> None:
    cell = written(tmp_path, pa.table({"name": [text]}))[1][0]
    assert (unescape(cell.value), cell.data_type) == (text, "s")
    assert cell.quotePrefix == (text[0] in "=+-@\t\r")


def written(folder: Path, rows: pa.Table, sheet_rows: int = xlsx.ROWS) -> list[list[Any]]:
    """Write rows as a workbook and return its cells, every sheet's one after the other."""
    with duckdb.connect() as database:
        table = published.Table("current", "made", "FROM made", rows.schema)
        database.register("made", rows)
        source = published.Published(database, Path("warehouse.v1.duckdb"))
        count, notes = xlsx._write(source, table, folder / "made.xlsx", sheet_rows)
    sheets = openpyxl.load_workbook(folder / "made.xlsx").worksheets
    assert count == rows.num_rows
    assert bool(notes) == (len(sheets) > 1)
    return [list(row) for each in sheets for row in each.iter_rows()]


def test_more_rows_than_a_sheet_holds_go_on_in_the_next(tmp_path: Path) -> None:
    cells = written(tmp_path, pa.table({"i": list(range(25))}), sheet_rows=11)
    assert [row[0].value for row in cells] == [
        *("i", *range(10)),
        *("i", *range(10, 20)),
        *("i", *range(20, 25)),
    ]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(DIGITS, min_size=10, max_size=10))
def test_a_cell_holds_a_decimal_to_the_last_digit(tmp_path: Path, numbers: list[Decimal]) -> None:
    """A column for each number, since each has a scale of its own: a workbook costs 50 ms."""
    columns = [
        pa.array([each], pa.decimal128(38, -int(each.as_tuple().exponent))) for each in numbers
    ]
    table = pa.table(columns, [f"n{each}" for each in range(len(columns))])
    with duckdb.connect() as database:
        database.register("made", table)
        shape = published.Table("current", "made", "FROM made", table.schema)
        source = published.Published(database, Path("warehouse.v1.duckdb"))
        xlsx._write(source, shape, tmp_path / "made.xlsx")
    cells = sheet(tmp_path / "made.xlsx")[1]
    assert [Decimal(str(cell.value)) for cell in cells] == numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(1900, 12, 31, 23, 59, tzinfo=UTC), "1900-12-31 23:59:00+00:00"),
        (datetime(1901, 1, 1, tzinfo=UTC), datetime(1901, 1, 1)),  # noqa: DTZ001
        (datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), None),
        (date(1900, 2, 28), "1900-02-28"),
    ],
)
def test_times_at_the_ends_of_the_calendar(value: date, shown: object) -> None:
    empty = published.Table("current", "made", "", pa.schema([]))
    cell, style = xlsx.Book(Workbook(BytesIO()), empty).cell(value, "yyyy")
    plain = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    assert cell == (plain if shown is None else shown)
    assert (style is None) == isinstance(cell, str)
