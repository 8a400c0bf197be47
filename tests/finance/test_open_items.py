"""Open items of any books add up to closing balances, and what is accrued to the journal."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.finance.closing.accrual import read_written_accrual
from pipelines.finance.closing.entries import JournalBasis
from pipelines.finance.closing.journal import write_journal
from pipelines.finance.closing.open_items import find_open_items
from tests.effort import EFFORT
from tests.finance.test_journal import CREATE_BOOKS, accounts_of_tests
from tests.reconcile.months import SEPTEMBER

CREATE_MORE = """
ALTER TABLE reconciliation.breaks ADD COLUMN gone_at TIMESTAMPTZ;
ALTER TABLE reconciliation.breaks ADD COLUMN resolved_by VARCHAR;
ALTER TABLE reconciliation.breaks ADD COLUMN reason VARCHAR;
CREATE SCHEMA finance;
CREATE TABLE finance.partner_months (connection VARCHAR, partner_id VARCHAR, month DATE,
    currency VARCHAR, verdict VARCHAR, cause VARCHAR);
CREATE TABLE reconciliation.without_usage (connection VARCHAR, partner VARCHAR, month DATE,
    currency VARCHAR, reason VARCHAR, kind VARCHAR, amount DECIMAL(38, 2));
CREATE TABLE reconciliation.exceptions (connection VARCHAR, partner VARCHAR, month DATE,
    currency VARCHAR, status VARCHAR, difference DECIMAL(38, 6));
CREATE TEMP TABLE used (connection VARCHAR, partner VARCHAR, month DATE, currency VARCHAR,
    amount DECIMAL(38, 6));
CREATE TEMP TABLE billed (connection VARCHAR, partner VARCHAR, month DATE, currency VARCHAR,
    apart VARCHAR, amount DECIMAL(38, 3));
"""
SUMS = """
SELECT items.currency, {}, sum(items.amount) FROM items
WHERE items.{} GROUP BY ALL HAVING sum(items.amount) <> 0
"""
MONTHS = (date(2026, 8, 1), SEPTEMBER, date(2026, 10, 1), None)
KEY = (
    st.just("acme"),
    st.sampled_from(["p", "q", None]),
    st.sampled_from(MONTHS),
    st.sampled_from(["EUR", "JPY", None]),
)


def amounts(places: int) -> Any:
    return st.decimals(min_value=-999, max_value=999, places=places)


def rows(*columns: Any) -> Any:
    return st.lists(st.tuples(*KEY, *columns), max_size=5)


RULES = st.sampled_from(["not_billed", "different", "not_used", "unknown_partner", "disappeared"])
BOOKS = st.fixed_dictionaries(
    {
        "temp.used": rows(amounts(6)),
        "temp.billed": rows(st.sampled_from([None, "credit note", "void"]), amounts(3)),
        "reconciliation.without_usage": rows(
            st.sampled_from(["accepted fees: support", "rounding"]), st.none(), amounts(2)
        ),
        "reconciliation.exceptions": rows(
            st.sampled_from(["within tolerance", "rounding", "balanced"]), amounts(6)
        ),
        "finance.partner_months": st.just([("acme", "p", SEPTEMBER, "EUR", "balanced", None)]),
    }
)
BREAKS = rows(
    *(RULES, amounts(5), amounts(5), st.sampled_from(["open", "resolved"])),
    *(st.sampled_from([None, "a list"]), st.sampled_from([None, None, "ledger"]), st.booleans()),
)
POSTED = st.lists(
    st.tuples(
        *(st.sampled_from(["usage", "billing"]), st.sampled_from(["p", None])),
        *(st.sampled_from(["EUR", "JPY"]), amounts(5), st.sampled_from(MONTHS[1:3])),
    ),
    max_size=4,
)


Books = dict[str, list[Any]]
Balances = dict[tuple[str | None, str | None], Decimal]


def insert(db: duckdb.DuckDBPyConnection, table: str, values: Iterable[tuple[Any, ...]]) -> None:
    for row in values:
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def fill(db: duckdb.DuckDBPyConnection, books: Books, breaks: list[Any], posted: list[Any]) -> None:
    """Create books with these rows; what is posted is of August."""
    db.execute(CREATE_BOOKS)
    db.execute(CREATE_MORE)
    for table, values in books.items():
        insert(db, table, values)
    names = "connection, partner, month, currency, rule, used_amount, difference, state, uncertain"
    table = f"reconciliation.breaks (break_id, {names}, own_source, gone_at)"
    for number, (*facts, state, uncertain, own, is_gone) in enumerate(breaks):
        gone_at = "2026-10-01" if is_gone and state == "resolved" else None
        insert(db, table, [(f"b{number}", *facts, state, uncertain, own, gone_at)])
    for number, (side, *facts) in enumerate(posted):
        row = (MONTHS[0], 1, side, "acme", f"c{number}", *facts)
        insert(db, "reconciliation.corrections", [row])


def closing_balances(books: Books, posted: list[Any]) -> Balances:
    """Return used less billed until September, less what is posted to a later month."""
    balances = defaultdict[tuple[str | None, str | None], Decimal](Decimal)
    moves = [(*row[1:4], row[-1]) for row in books["temp.used"]]
    moves += [(*row[1:4], -row[-1]) for row in books["temp.billed"] if row[-2] != "void"]
    for partner, month, currency, amount in moves:
        if month and month <= SEPTEMBER:
            balances[partner, currency] += amount
    for side, partner, currency, difference, posted_to in posted:
        if posted_to > SEPTEMBER:
            balances[partner, currency] -= difference if side == "usage" else -difference
    return {key: amount for key, amount in balances.items() if amount}


@pytest.mark.long
@settings(
    max_examples=40 * EFFORT,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(books=BOOKS, breaks=BREAKS, posted=POSTED)
def test_open_items_of_any_books_add_up(
    tmp_path: Path, books: Books, breaks: list[Any], posted: list[Any]
) -> None:
    with duckdb.connect() as db:
        fill(db, books, breaks, posted)
        write_journal(db, tmp_path, (SEPTEMBER, 1), JournalBasis(accounts_of_tests(), None, []))
        query = find_open_items(db, SEPTEMBER)
        db.execute(f"CREATE TABLE items AS {query}", {"month": SEPTEMBER})
        found = db.execute(SUMS.format("partner", "reason <> 'no month'")).fetchall()
        accrued = db.execute(SUMS.format("'accrued'", "reason = 'accrued'")).fetchall()
    sums = {(partner, currency): amount for currency, partner, amount in found}
    assert sums == closing_balances(books, posted)
    journal = read_written_accrual(tmp_path) or []
    assert {currency: amount for currency, _accrued, amount in accrued} == {
        row["currency"]: row["posted"] for row in journal if row["posted"]
    }
