"""`export books`: one file that accountants open anywhere, also with every row of both sides."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.app.export import export_tables
from pipelines.core.errors import ConfigurationError
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Stores, home_of


def publish_credit(stores: Stores) -> None:
    """Publish usage, its bill with a fee, and a credit note."""
    stores.configure()
    publish(
        stores,
        partners=partners([FIRST]),
        usage=[used("u"), used("v", "2.00")],
        billing=[
            bill("b", line("u"), line(None, "1.00")),
            bill("c", line("u", "0.50"), kind="credit"),
        ],
    )


credited = home_of(publish_credit)


def rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(file), read_only=True) as db:
        return db.execute(sql).fetchall()


def test_books_are_one_file_that_can_be_sent(credited: Stores, tmp_path: Path) -> None:
    (row,) = export_tables(credited, "books", folder=tmp_path / "sent")
    file = tmp_path / "sent" / "books.duckdb"
    assert (row["table"], row["exported_to"]) == ("books", str(file))
    months = "SELECT partner, used, billed, credited FROM finance.partner_months"
    assert rows(file, months) == [
        ("first Ltd", Decimal("7.00"), Decimal("6.00"), Decimal("-0.50")),
    ]
    tables = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'billed_lines'"
    assert rows(file, tables) == [(0,)]


def test_records_are_tables_with_all_roles_and_names(credited: Stores) -> None:
    cli = Cli(credited.home)
    exported = cli.json("export", "books", "--records")
    assert [(row["table"], row["rows"]) for row in exported] == [
        ("books", None),
        ("finance.used_records", 2),
        ("finance.billed_lines", 3),
    ]
    file = credited.home.exports / "v00000001-books" / "books.duckdb"
    lines = "SELECT id, partner, reference, amount, set_apart FROM finance.billed_lines ORDER BY id"
    assert rows(file, lines) == [
        ("b#0", "first Ltd", "u", Decimal("5.00"), None),
        ("b#1", "first Ltd", None, Decimal("1.00"), None),
        ("c#0", "first Ltd", "u", Decimal("-0.50"), "credit note"),
    ]
    used_rows = "SELECT id, partner, amount, quantity FROM finance.used_records ORDER BY id"
    assert rows(file, used_rows)[1] == ("v", "first Ltd", Decimal("2.00"), Decimal(1))
    roles = "SELECT plan, metric, unit, region, organization FROM finance.billed_lines LIMIT 1"
    assert rows(file, roles) == [(None,) * 5]
    bare = "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL"
    assert rows(file, f"{bare} AND NOT internal") == []
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_cannot_be_exported_is_said(credited: Stores) -> None:
    with pytest.raises(ConfigurationError, match="--records is for `export books`"):
        export_tables(credited, "csv", records=True)
    with pytest.raises(ConfigurationError, match="--table is not for `export books`"):
        export_tables(credited, "books", ["current.usage"])
    publish(credited, mapping=MAPPING[:0])
    with pytest.raises(ConfigurationError, match="Nothing is mapped"):
        export_tables(credited, "books", records=True)
    assert not list(credited.home.exports.glob("*books*"))
