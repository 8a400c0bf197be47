"""Schema `finance`, and the questions in docs/analysts.md that it answers."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipelines.reconcile.engine import create_finance_views

PAGE = Path(__file__).parents[2] / "docs" / "analysts.md"
SECTION = PAGE.read_text("utf-8").partition("## Ten questions")[2].partition("\n## ")[0]
QUESTIONS = re.findall(r"\?\n\n```sql\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def db(tmp_path: Path, reconciled_home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A version that can be written."""
    file = tmp_path / "version.duckdb"
    file.write_bytes((reconciled_home / "warehouse.duckdb").read_bytes())
    with duckdb.connect(file) as opened:
        yield opened


def test_ten_questions_are_one_select_each_with_an_answer(db: duckdb.DuckDBPyConnection) -> None:
    assert len(QUESTIONS) == 10
    for query in QUESTIONS:
        assert query.startswith("SELECT")
        assert " JOIN " not in query
        assert db.execute(query).fetchall() or "finance.changes" in query


def test_views_show_names_and_the_same_totals(db: duckdb.DuckDBPyConnection) -> None:
    for view in ("partner_months", "month_totals"):
        totals = f"SELECT sum(difference) FROM finance.{view} WHERE currency = 'KWD'"
        assert db.execute(totals).fetchall() == [(Decimal("-3.134"),)]
    named = "SELECT DISTINCT partner FROM finance.balances ORDER BY 1"
    assert ("first Ltd",) in db.execute(named).fetchall()
    bills = "SELECT bill, set_apart FROM finance.bills WHERE set_apart IS NOT NULL ORDER BY 1"
    assert db.execute(bills).fetchall() == [("c1", "credit note"), ("v1", "void")]


def views(db: duckdb.DuckDBPyConnection, *failed: str) -> set[str]:
    create_finance_views(db, failed)
    query = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'finance'"
    return {name for (name,) in db.execute(query).fetchall()}


def test_a_view_of_what_is_not_evaluated_is_left_out(db: duckdb.DuckDBPyConnection) -> None:
    left_out = views(db) - views(db, "summary")
    assert left_out == {"partner_months", "month_totals"}
    with duckdb.connect() as empty:
        assert views(empty) == set()
