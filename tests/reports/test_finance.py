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
QUESTIONS = re.findall(r"([^\n]+\?)\n\n```sql\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture(scope="module")
def db(
    tmp_path_factory: pytest.TempPathFactory, reconciled_home: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    file = tmp_path_factory.mktemp("finance") / "version.duckdb"
    file.write_bytes((reconciled_home / "warehouse.duckdb").read_bytes())
    with duckdb.connect(file) as opened:
        create_finance_views(opened)
        yield opened


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("query", [query for _, query in QUESTIONS], ids=[q for q, _ in QUESTIONS])
def test_a_question_is_one_select_with_an_answer(db: duckdb.DuckDBPyConnection, query: str) -> None:
    assert query.startswith("SELECT")
    assert " JOIN " not in query
    assert db.execute(query).fetchall() or "finance.changes" in query


def test_views_show_names_and_the_same_totals(db: duckdb.DuckDBPyConnection) -> None:
    months = "SELECT sum(difference) FROM finance.{} WHERE currency = 'KWD'"
    found = {
        db.execute(months.format(each)).fetchone() for each in ("partner_months", "month_totals")
    }
    assert found == {(Decimal("-3.134"),)}
    named = "SELECT DISTINCT partner FROM finance.balances ORDER BY 1"
    assert ("first Ltd",) in db.execute(named).fetchall()
    bills = "SELECT bill, set_apart FROM finance.bills WHERE set_apart IS NOT NULL ORDER BY 1"
    assert db.execute(bills).fetchall() == [("c1", "credit note"), ("v1", "void")]


def test_a_view_of_what_is_not_evaluated_is_left_out(db: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'finance'"
    before = {*db.execute(query).fetchall()}
    create_finance_views(db, ["summary"])
    after = {*db.execute(query).fetchall()}
    create_finance_views(db)
    assert before - after == {("partner_months",), ("month_totals",)}
    assert {*db.execute(query).fetchall()} == before


def test_views_of_a_version_without_reconciliation_are_left_out() -> None:
    with duckdb.connect() as empty:
        create_finance_views(empty)
        query = "SELECT count(*) FROM duckdb_views() WHERE schema_name = 'finance'"
        assert empty.execute(query).fetchall() == [(0,)]
