"""Schema `finance`, and the questions in docs/analysts.md that it answers."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipelines.finance.reconcile.views import create_finance_views
from pipelines.warehouse.books import BooksFolder
from tests.versions.homes import Stores

PAGE = Path(__file__).parents[2] / "docs" / "analysts.md"
SECTION = PAGE.read_text("utf-8").partition("## Ten questions")[2].partition("\n## ")[0]
QUESTIONS = re.findall(r"\?\n\n```sql\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def db(stores: Stores) -> Iterator[duckdb.DuckDBPyConnection]:
    """Books that are open for writing, with their version."""
    folder = BooksFolder(stores.warehouse)
    version = stores.warehouse.require_published()
    with folder.write(version, folder.newest_of(version.number)) as (_books, opened):
        yield opened


def test_ten_questions_are_one_select_each_with_an_answer(db: duckdb.DuckDBPyConnection) -> None:
    assert len(QUESTIONS) == 10
    for query in QUESTIONS:
        assert query.startswith("SELECT")
        assert " JOIN " not in query
        assert db.execute(query).fetchall() or "finance.changes" in query


def test_what_may_be_disputed_is_what_exceeds_the_usage(db: duckdb.DuckDBPyConnection) -> None:
    disputed = db.execute(next(each for each in QUESTIONS if "billed_twice" in each)).fetchall()
    assert Decimal("1.366") in [row[3] for row in disputed]


def test_views_show_names_and_the_same_totals(db: duckdb.DuckDBPyConnection) -> None:
    for view in ("partner_months", "month_totals"):
        totals = f"SELECT sum(difference) FROM finance.{view} WHERE currency = 'KWD'"
        assert db.execute(totals).fetchall() == [(Decimal("-3.134"),)]
    named = "SELECT DISTINCT partner FROM finance.balances ORDER BY 1"
    assert ("first Ltd",) in db.execute(named).fetchall()
    bills = "SELECT bill, set_apart FROM finance.bills WHERE set_apart IS NOT NULL ORDER BY 1"
    assert db.execute(bills).fetchall() == [("c1", "credit note"), ("v1", "void")]


# Names that mean something else in another table, or are the name of a table as well.
COMMENTS = {
    "open_breaks.severity": "high, medium or low: ",
    "open_breaks.first_seen": "End of the newest scan when it was first found.",
    "ageing.severity": "high, medium or low: ",
    "bills.number": "Invoice number.",
    "bills.billed": "Amount of the bill, also if it does not count",
    "balances.billed": "Bills as they were first read.",
    "rollforward.billed": "Bills as they were first read.",
    "month_totals.partners": "Partners with usage or bills",
    "month_totals.open_breaks": "Number of unresolved breaks, without uncertain ones.",
    "summary.bills": "Number of bills that count.",
    "partners.last_month": "Last month with usage.",
    "names.connection": "Connection that was read.",
}


def test_every_column_is_explained_in_its_own_words(db: duckdb.DuckDBPyConnection) -> None:
    tables = {text for (text,) in db.execute("SELECT comment FROM duckdb_views()").fetchall()}
    tables |= {text for (text,) in db.execute("SELECT comment FROM duckdb_tables()").fetchall()}
    columns = db.execute(
        "SELECT concat(table_name, '.', column_name), comment FROM duckdb_columns() "
        "WHERE schema_name IN ('finance', 'reconciliation')"
    ).fetchall()
    assert [name for name, text in columns if not text or text in tables] == []
    for name, text in columns:
        assert text.startswith(COMMENTS.get(name, "")), name


def test_macros_are_explained(stores: Stores) -> None:
    macros = stores.rows(
        "SELECT DISTINCT comment FROM duckdb_functions() WHERE function_name = 'usage_as_of'"
    )
    assert macros == [("Rows of list usage that were valid at a moment.",)]


def views(db: duckdb.DuckDBPyConnection, *failed: str) -> set[str]:
    db.execute("DROP SCHEMA IF EXISTS finance CASCADE; CREATE SCHEMA finance")
    create_finance_views(db, failed)
    query = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'finance'"
    return {name for (name,) in db.execute(query).fetchall()}


@pytest.mark.long
def test_a_view_of_what_is_not_evaluated_is_left_out(db: duckdb.DuckDBPyConnection) -> None:
    left_out = views(db) - views(db, "summary")
    assert left_out == {"partner_months", "month_totals"}
    with duckdb.connect() as empty:
        assert views(empty) == set()
