"""Which values a workbook keeps and which it refuses; integers wider than 64 bits."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from pipelines.app.export_table import list_tables
from pipelines.app.export_xlsx import is_exact, to_excel_time, write_workbook
from pipelines.core.errors import StorageFailed


def test_what_a_workbook_cannot_hold_is_refused(tmp_path: Path) -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE long AS SELECT unnest(range(1048576)) AS n")
        db.execute("CREATE TABLE texts AS SELECT repeat('🎈', 16384) AS text")
        db.execute("CREATE TABLE markup AS SELECT '<r><b>x</r>' AS text")
        tables = list_tables(db)
        for name, reason in (
            ("long", "has 1,048,576 rows, but a sheet holds 1,048,575"),
            ("texts", "a text in row 1 of column `text`"),
            ("markup", "is <r> markup"),
        ):
            with pytest.raises(StorageFailed, match=reason) as error:
                write_workbook(tables[f"main.{name}"], tmp_path / "x.xlsx")
            assert error.value.remedy == "Export it as parquet or csv."


def test_wide_integers_stay_exact(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    with duckdb.connect() as db:
        db.execute(
            f"CREATE TABLE wide AS SELECT {10**30 + 1}::HUGEINT AS a, {2**64 - 1}::UBIGINT AS b"
        )
        table = list_tables(db)["main.wide"]
        db.execute(f"COPY ({table.query()}) TO '{file}' (FORMAT parquet)")
    assert pq.read_table(file).to_pylist() == [{"a": Decimal(10**30 + 1), "b": Decimal(2**64 - 1)}]


def test_excel_keeps_numbers_of_15_digits() -> None:
    kept = (Decimal("0.1"), Decimal("-12345678901234.5"), 10**15 - 1, 10**20, 0, 0.5)
    assert [number for number in kept if not is_exact(number)] == []
    rounded = (Decimal("1234567890.123456"), 10**15 + 1, 1 / 3, float("nan"), float("inf"))
    assert [number for number in rounded if is_exact(number)] == []


def test_excel_keeps_times_of_milliseconds_from_march_1900_on() -> None:
    time = datetime(2026, 10, 1, 12, 0, 0, 123000, tzinfo=UTC)
    assert to_excel_time("2026-10-01 12:00:00.123+00") == time.replace(tzinfo=None)
    for text in ("1900-02-28", "2026-10-01 12:00:00.1234+00", "infinity", "0044-03-15 (BC)"):
        assert to_excel_time(text) is None
