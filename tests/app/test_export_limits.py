"""What the targets of an export can hold: workbooks, wide integers, dbt sources."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from pipelines.app.export import ExportRequest, export_tables
from pipelines.app.export_table import list_tables
from pipelines.app.export_xlsx import is_exact, to_excel_time, write_workbook
from pipelines.app.progress import Progress
from pipelines.core.errors import StorageFailed
from pipelines.publish.build import build
from tests.app.conftest import session_of
from tests.publish.homes import Reading, copy_home, read, usage


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
        values = f"{10**30 + 1}::HUGEINT AS a, {2**64 - 1}::UBIGINT AS b"
        db.execute(f"CREATE TABLE wide AS SELECT {values}")
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


def test_dbt_gets_every_table_of_a_schema_with_its_comments(
    empty_home: Path, tmp_path: Path
) -> None:
    stores = copy_home(empty_home, tmp_path / "home")
    read(stores, Reading(usage(1)))
    build(stores)
    request = ExportRequest("dbt", ["meta", "current.usage"], tmp_path / "dbt")
    rows = export_tables(session_of(stores), request, Progress())
    document = json.loads((tmp_path / "dbt" / "sources.yml").read_text(encoding="utf-8"))
    tables = {
        f"{source['schema']}.{table['name']}": table
        for source in document["sources"]
        for table in source["tables"]
    }
    assert [*tables] == [row["table"] for row in rows]
    assert {"meta.loads", "meta.freshness", "current.usage"} <= tables.keys()
    for table in tables.values():
        assert table["description"]
        assert all(column["description"] for column in table["columns"])
    stores.metadata.close()
