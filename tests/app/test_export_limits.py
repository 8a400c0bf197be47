"""What the targets of an export can hold: workbooks, databases, wide integers."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from sqlalchemy import make_url

from pipelines.app.export import FORMATS
from pipelines.app.export_sql import target_table
from pipelines.core.errors import StorageFailed
from pipelines.versions.export_table import ExportTable, list_tables
from pipelines.versions.export_xlsx import cell_of, write_workbook


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def table_of(db: duckdb.DuckDBPyConnection, values: str) -> ExportTable:
    db.execute(f"CREATE OR REPLACE TABLE made AS SELECT {values}")
    (table,) = list_tables(db)
    return table


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("unnest(range(1048576)) AS n", "has 1,048,576 rows, but a sheet holds 1,048,575"),
        ("repeat('🎈', 16384) AS text", "a text in row 1 of column `text`"),
        ("'<r><b>x</r>' AS text", "is <r> markup"),
        ('1 AS "<r>x</r>"', "in row 0 of column `<r>x</r>`"),
    ],
)
def test_what_a_workbook_cannot_hold_is_refused(
    db: duckdb.DuckDBPyConnection, tmp_path: Path, values: str, reason: str
) -> None:
    with pytest.raises(StorageFailed, match=reason) as error:
        write_workbook(table_of(db, values), tmp_path / "x.xlsx")
    assert error.value.remedy == "Export it as parquet or csv."


@pytest.mark.parametrize(
    ("kind", "kept", "text"),
    [
        ("DECIMAL(38, 8)", "0.1 -12345678901234.5 0", "1234567890.123456 12345678901234567890.1"),
        ("BIGINT", "0 -999999999999999 1000000000000000", "-9223372036854775808 1000000000000001"),
        ("UBIGINT", "10000000000000000000", "18446744073709551615"),
        ("DATE", "1900-03-01 9999-12-31", "1900-02-28 0044-03-15(BC) infinity -infinity"),
        ("TIMESTAMPTZ", "2026-10-01T12:00:00.123Z 9999-12-31T23:59:59Z", "1900-02-28T23:59:59Z"),
        ("TIMESTAMPTZ", "1900-03-01T00:00:00Z", "2026-10-01T12:00:00.1234Z infinity"),
        ("DOUBLE", "", "0.1 nan inf"),
    ],
)
def test_excel_keeps_15_digits_and_milliseconds(
    db: duckdb.DuckDBPyConnection, kind: str, kept: str, text: str
) -> None:
    db.execute("SET TimeZone = 'UTC'")
    for literals, is_kept in ((kept, True), (text, False)):
        for literal in literals.split():
            table = table_of(db, f"'{literal}'::{kind} AS value")
            (((value,),),) = table.rows(cell_of)
            assert isinstance(value, str) is not is_kept, literal


def test_wide_integers_stay_exact(db: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    table = table_of(db, f"{10**30 + 1}::HUGEINT AS a, {2**64 - 1}::UBIGINT AS b")
    FORMATS["parquet"](table, tmp_path / "x.parquet")
    found = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert found == [{"a": Decimal(10**30 + 1), "b": Decimal(2**64 - 1)}]


def test_every_database_gets_decimals_exactly(db: duckdb.DuckDBPyConnection) -> None:
    table = table_of(db, "1::DECIMAL(38, 8) AS amount, '' AS text, [1] AS list")
    for driver, text in (
        ("sqlite", "TEXT"),
        ("postgresql+psycopg", "TEXT"),
        ("mysql+pymysql", "LONGTEXT"),
        ("mssql+pyodbc", "NTEXT"),
        ("oracle+oracledb", "CLOB"),
    ):
        dialect = make_url(f"{driver}://").get_dialect()()
        types = [column.type.compile(dialect) for column in target_table(table, dialect).columns]
        assert types == [text if driver == "sqlite" else "NUMERIC(38, 8)", text, text]
