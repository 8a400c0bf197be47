"""Into databases: SQLite, which has no decimals, and DuckDB, which has; exact or taken back."""

import sqlite3
from contextlib import nullcontext
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from pipelines.destinations import sql
from pipelines.errors import ConfigurationError, ExportFailed
from tests.destinations.conftest import Exporting

PASSWORD = "hunter2-very-secret"
WIDE = "12345678901234567890123456789012345.67"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the SQLite file that the variable EXPORT_URL names."""
    file = tmp_path / "target.sqlite"
    monkeypatch.setenv("EXPORT_URL", f"sqlite:///{file}")
    return file


def test_sqlite_gets_every_digit_as_text(exporting: Exporting, target: Path) -> None:
    made = exporting(to="EXPORT_URL")

    assert made.place == "EXPORT_URL"
    assert [(each.place, each.rows) for each in made.written] == [
        ("current_usage", 5),
        ("current_usage__events", 0),
        ("history_usage", 6),
    ]
    assert made.written[0].notes[0].startswith("current.usage: amount, rate are text")
    with sqlite3.connect(target) as database:
        rows = database.execute("SELECT amount, rate, quantity, used_at, name FROM current_usage")
        found = rows.fetchall()
    assert found[0] == (WIDE, "0.00000001", 9007199254740993, "2026-11-21 10:00:00.123456", "=1+1")
    assert found[1][:3] == ("-0.10", "-0.00000010", -5)
    assert found[3] == (None, None, None, None, None)


def test_a_database_with_decimals_has_decimals(
    exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "target.duckdb"
    monkeypatch.setenv("EXPORT_URL", f"duckdb:///{file}")
    made = exporting(to="EXPORT_URL")

    assert [each.notes for each in made.written] == [(), (), ()]
    with duckdb.connect(file, read_only=True) as database:
        row = database.sql("SELECT amount, rate, used_at, _digest FROM current_usage").fetchall()[0]
        kinds = database.sql("SELECT typeof(amount) FROM current_usage LIMIT 1").fetchall()
    assert row[:2] == (Decimal(WIDE), Decimal("0.00000001"))
    assert row[2] == datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=UTC)
    assert row[3] == b"\xaa\x00"
    assert kinds == [("DECIMAL(38,2)",)]


def test_again_replaces_the_tables_and_leaves_the_others(
    exporting: Exporting, target: Path
) -> None:
    with sqlite3.connect(target) as database:
        database.execute("CREATE TABLE current_usage (old INTEGER)")
        database.execute("CREATE TABLE theirs AS SELECT 1 AS kept")
    database.close()
    exporting("usage", to="EXPORT_URL")
    exporting("usage", to="EXPORT_URL")
    with sqlite3.connect(target) as database:
        counted = "SELECT (SELECT count(*) FROM current_usage), (SELECT kept FROM theirs)"
        assert database.execute(counted).fetchone() == (5, 1)


def test_a_failure_takes_everything_back(exporting: Exporting, target: Path) -> None:
    with sqlite3.connect(target) as database:
        database.execute("CREATE TABLE current_usage (old INTEGER)")
        database.execute("CREATE VIEW history_usage AS SELECT 1 AS i")
    database.close()
    with pytest.raises(ExportFailed, match=r"EXPORT_URL names refused: .*It keeps the tables"):
        exporting(to="EXPORT_URL")
    with sqlite3.connect(target) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(current_usage)")]
    assert columns == ["old"]


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (["0.10", WIDE], None),
        (["0.10", "12345678901234567890123456789012345.68"], "the database rounds amount"),
        (["0.10"], "of 2 rows 1 arrived"),
    ],
)
def test_what_arrived_is_read_back(stored: list[str], words: str | None) -> None:
    engine = sa.create_engine("sqlite://")
    table = sa.Table("t", sa.MetaData(), sa.Column("amount", sql.Exact(38, 2)))
    with engine.begin() as connection, localcontext(prec=50):
        table.create(connection)
        connection.execute(table.insert(), [{"amount": Decimal(each)} for each in stored])
        sums = {"amount": Decimal(WIDE) + Decimal("0.10")}
        raised = pytest.raises(ExportFailed, match=words) if words else nullcontext()
        with raised:
            sql._assert_there(connection, table, 2, sums)
        assert sums
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "kind", "words"),
    [
        (f"sqlite:////no/such/folder/{PASSWORD}.db", ExportFailed, "unable to open database file"),
        (f"nothing://user:{PASSWORD}@host/database", ConfigurationError, "a driver that is not"),
        (
            f"postgresql+pg8000://user:{PASSWORD}@host/db",
            ConfigurationError,
            "a driver that is not",
        ),
        (f"{PASSWORD} is no url", ConfigurationError, "not set to a SQLAlchemy URL"),
    ],
)
def test_no_error_tells_what_the_url_holds(
    exporting: Exporting,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    kind: type[Exception],
    words: str,
) -> None:
    monkeypatch.setenv("EXPORT_URL", url)
    with pytest.raises(kind) as caught:
        exporting(to="EXPORT_URL")
    assert words in str(caught.value)
    assert "EXPORT_URL" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__suppress_context__
