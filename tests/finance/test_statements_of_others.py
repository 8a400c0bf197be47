"""A statement says nothing that rows of another partner contribute."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.finance.close import close_month
from tests.cli.conftest import Cli
from tests.finance.statements import PARTNERS, TERMS
from tests.finance.test_statements import page_of, written
from tests.reconcile.books import FIRST, bill, line, publish, used
from tests.reconcile.months import SERVICE, signing
from tests.reports.conftest import text_of
from tests.versions.homes import Stores, home_of

AMOUNTS = st.decimals("0.01", "99", places=2).map(str)
SECRET = ["88.11", "88.22", "88.33", "88.44"]
MINUS = "\u2212"
OCTOBER = {"partner": "second", "month": "2026-10-01", "issued": "2026-10-03T10:00:00Z"}


def publish_others(stores: Stores, amounts: list[str] | None = None) -> None:
    """Publish usage of one partner that is on its bills and on bills of another one."""
    if amounts is None:
        stores.configure(**SERVICE)
    a, b, c, d = amounts or SECRET
    own = [
        bill("b1", line("u1", "10.25"), number="INV-1"),
        bill("b2", line("u4", "2.00"), number="INV-2"),
        bill("b3", line("u4", "2.50"), number="INV-3", issued="2026-10-02T10:00:00Z"),
    ]
    others = [
        bill("x1", line("u1", a), number="INV-X1", partner="second"),
        bill("x2", line("u2", b), number="INV-X2", **OCTOBER),
        bill("x3", line("u3", c), number="INV-X3", partner="second"),
        bill("x4", line("u3", d), number="INV-X4", partner="second"),
        bill("x5", line("u4", a), number="INV-X5", partner="second"),
    ]
    usage = [used("u1", "10.25"), used("u2", "7.10"), used("u3", "3.00"), used("u4", "2.00")]
    publish(stores, mapping=TERMS, partners=PARTNERS, usage=usage, billing=own + others)


books = home_of(publish_others)


def text_for(stores: Stores, partner: str = FIRST) -> str:
    """Return the text of a statement without the books that it is from."""
    text = text_of(page_of(written(stores)[partner]))
    return re.sub(r"as of .*?Totals|Our reference.*", "", text)


@pytest.mark.long
@given(st.lists(AMOUNTS, min_size=4, max_size=4))
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_amounts_of_another_partner_change_nothing(books: Stores, amounts: list[str]) -> None:
    publish_others(books, SECRET)
    before = text_for(books)
    assert "INV-X" not in before
    assert "88." not in before
    assert "Billed more than once (EUR) +2.50" in before
    assert f"Usage that is billed to another account (EUR) {MINUS}7.10 Usage u2" in before
    publish_others(books, amounts)
    assert text_for(books) == before


@pytest.mark.long
def test_a_partner_is_asked_for_bills_of_the_usage_of_others(books: Stores) -> None:
    text = "Billed, and no usage of this account is known for it (EUR)"
    asked = text_for(books, "second")
    assert f"{text} +88.22 Bill INV-X2" in asked
    assert f"{text} +176.77 Bill INV-X4" in asked
    assert "Usage u" not in asked
    before = text_for(books)
    close_month(books, *signing())
    # Also of a bill of October, of which the copy has only what the break says.
    assert text_for(books) == before
    assert text_for(books, "second") == asked
    assert "INV-3" in before
    assert "Bill INV-X1" in asked
    # What was erased since is still in the copy.
    Cli(books.home)("erase", "u2", "--reason", "asked", "--yes", "--force")
    assert f"{MINUS}7.10 Usage [erased]" in text_for(books)
    Cli(books.home)("erase", "second", "--reason", "asked", "--yes", "--force")
    assert "second" not in written(books)
