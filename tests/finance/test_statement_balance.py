"""A statement says what is paid of a partner's bills, where the service says it."""

from typing import Any

import pytest

from pipelines.finance.close import close_month
from tests.finance.statements import BILLS, FEES, PARTNERS, TERMS, USAGE
from tests.finance.test_statements import OCTOBER, cells_of, page_of, written
from tests.reconcile.books import FIRST, bill, line, publish, used
from tests.reconcile.months import SERVICE, signing
from tests.reports.conftest import text_of
from tests.versions.homes import Record, Stores, home_of

PAYMENTS = TERMS.replace("line_usage", 'open = "amountDue"\nline_usage', 1) + FEES
# What is open of each bill: INV-2 bills 2.00 too much, INV-4 what INV-1 bills.
OPEN = {"b1": "0.00", "b2": "9.10", "b4": "4.25", "b5": "0.00", "b6": "0.50", "c1": "0.00"}
OF_SEPTEMBER = "EUR 40.59 26.74 13.85 13.35 18.85"


LATER = bill("oct", line("oct", "5.00"), month="2026-10-01", number="INV-8")


def with_open(bills: list[Record], **amounts: str) -> list[Record]:
    return [{**each, "amountDue": ({**OPEN, **amounts}).get(each["id"])} for each in bills]


def publish_balances(stores: Stores) -> None:
    stores.configure(**SERVICE)
    bills = with_open([*BILLS, LATER], oct="5.00")
    usage = [*USAGE, used("nov", day="2026-11-01")]
    publish(stores, mapping=PAYMENTS, partners=PARTNERS, usage=usage, billing=bills)


books = home_of(publish_balances)


def balance_of(row: dict[str, Any]) -> str:
    """Return what the page says of a balance."""
    text = text_of(page_of(row))
    return text.partition("Open, all months ")[2].partition(" Bills less")[0]


def test_a_balance_is_exact_and_says_what_is_not_known(books: Stores) -> None:
    row = written(books)[FIRST]
    # The service does not say what is open of the bill in yen.
    unknown = "not known"
    assert balance_of(row) == f"{OF_SEPTEMBER} JPY 700 {unknown} {unknown} 0 {unknown}"
    cells = [cells[:6] for cells in cells_of(row, "statement")]
    assert ("EUR", 40.59, 26.74, 13.85, 13.35, 18.85) in cells
    assert ("JPY", 700, unknown, unknown, 0, unknown) in cells
    # Of another partner, nothing.
    assert "98.76" not in page_of(row)


@pytest.mark.long
def test_a_payment_makes_a_new_statement_also_of_a_closed_month(books: Stores) -> None:
    close_month(books, *signing())
    first = written(books)[FIRST]
    assert balance_of(first).startswith(OF_SEPTEMBER)
    assert written(books)[FIRST]["is_new"] is False
    publish(books, mapping=PAYMENTS, billing=with_open([*BILLS, LATER], b2="0.00", oct="5.00"))
    paid = written(books)[FIRST]
    assert (paid["number"], paid["is_new"]) == (first["number"] + 1, True)
    assert balance_of(paid).startswith("EUR 40.59 35.84 4.75 4.25 9.75")
    assert paid["source"] == first["source"]


@pytest.mark.long
def test_without_payments_a_statement_has_no_balance(books: Stores) -> None:
    publish(books, mapping=TERMS + FEES)
    for month in (None, OCTOBER):
        row = (written(books, month) if month else written(books))[FIRST]
        assert "Balance" not in page_of(row)
        assert "Balance" not in str(cells_of(row, "statement"))
