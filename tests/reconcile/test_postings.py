"""Corrections of closed months: each is posted once, whatever is rolled back, rebuilt or erased."""

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.finance.close import close_month, reopen_month
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.reconcile.months import (
    BILLS,
    OCTOBER,
    POSTED,
    SEPTEMBER,
    TERMS,
    USAGE,
    close,
    publish_closed,
    restate,
    signing,
)
from tests.reports.conftest import page_text
from tests.versions.homes import Stores, goes_on_from, home_of
from tests.versions.named import erase, roll_back

TAKEN = ("usage", "u", "EUR", "5.00", "8.00", "3.00", "10")


@goes_on_from(publish_closed)
def publish_taken(stores: Stores) -> None:
    """Close October, which takes a correction of September."""
    restate(stores, "8.00", "7.00")
    later = bill("c", line("now", "1.00"), month="2026-11-01")
    publish(stores, partners=partners([FIRST]), billing=[*BILLS, later])
    close(stores, OCTOBER)


taken = home_of(publish_taken)


def damage(stores: Stores) -> None:
    file = stores.warehouse.require_published().path
    file.chmod(0o600)
    file.write_bytes(b"no database")
    rebuild_with_books(stores)


def rebuild_without_mapping(stores: Stores) -> None:
    write_durably(stores.home.mapping_file, b"nonsense = 1\n")
    rebuild_with_books(stores)
    write_durably(stores.home.mapping_file, TERMS.encode())


@pytest.mark.long
@pytest.mark.parametrize("lose", [damage, rebuild_without_mapping])
def test_what_a_month_took_is_not_posted_again(
    taken: Stores, lose: Callable[[Stores], None]
) -> None:
    known = "SELECT break_id, first_seen FROM reconciliation.breaks ORDER BY ALL"
    before = taken.rows(known)
    assert taken.rows(POSTED) == [TAKEN]
    lose(taken)
    build_with_books(taken)
    assert taken.rows(POSTED) == [TAKEN]
    assert taken.rows(known) == before


@pytest.mark.long
def test_a_rollback_takes_back_what_a_month_took(taken: Stores) -> None:
    roll_back(taken, 1)
    build_with_books(taken)
    back = ("usage", "u", "EUR", "8.00", "5.00", "-3.00", "11")
    assert sorted(taken.rows(POSTED)) == sorted([TAKEN, back])
    restate(taken, "8.00", "7.00")
    assert taken.rows("SELECT sum(difference)::INTEGER FROM finance.corrections") == [(3,)]
    restate(taken, "5.00", "7.00")
    assert taken.rows(POSTED)[-1] == back


@pytest.mark.long
def test_an_erased_correction_is_posted_back(taken: Stores) -> None:
    assert erase(taken, "u")
    erased = [row[3:] for row in taken.rows(POSTED) if row[1] == "[erased]"]
    assert erased == [("5.00", "8.00", "3.00", "10"), ("8.00", None, "-8.00", "11")]
    copy = taken.home.closes / "2026-10" / "001" / "corrections.parquet"
    assert duckdb.sql(f"SELECT id FROM '{copy}'").fetchall() == [("u",)]
    posted = taken.rows(POSTED)
    rebuild_with_books(taken)
    assert taken.rows(POSTED) == posted


@pytest.mark.long
def test_records_whose_names_contain_an_erased_one_keep_what_is_known(stores: Stores) -> None:
    stores.configure()
    names = ("p1", "p10")
    usage = [used(f"u-{name}", "9.00", partner=name) for name in names]
    publish(stores, partners=partners(names), usage=usage, billing=BILLS)
    known = """
        SELECT partner, first_seen, state FROM reconciliation.breaks WHERE rule = 'not_billed'
        ORDER BY partner
    """
    before = stores.rows(known)
    assert erase(stores, "p1")
    assert stores.rows(known) == before[1:]
    found = "SELECT partner FROM reconciliation.break_rows WHERE rule = 'not_billed'"
    assert stores.rows(found) == [("p10",)]


@pytest.mark.long
def test_no_record_is_in_two_closed_months_or_in_none(books: Stores) -> None:
    mapping, edge = (
        TERMS.replace('period = "day"', 'period = "recorded"', 1),
        "2026-09-30T20:00:00Z",
    )
    rows = [used("u", recorded=edge), *USAGE[1:]]
    publish(books, mapping=mapping, partners=partners([FIRST]), usage=rows, billing=BILLS)
    close(books)
    mapping = f'time_zone = "Asia/Tokyo"\n{mapping}'
    publish(books, mapping=mapping, partners=partners([FIRST]), billing=BILLS)
    with pytest.raises(ConfigurationError, match="1 record would be in both months or in none"):
        close_month(books, *signing(OCTOBER))
    reopen_month(books, SEPTEMBER, "cid", "another time zone")
    build_with_books(books)
    close(books)
    close(books, OCTOBER)


@pytest.mark.long
def test_the_report_names_every_month_that_took_a_correction(taken: Stores) -> None:
    restate(taken, "8.25", "7.00")
    page = page_text(taken)
    assert "Sep 2026 EUR&nbsp;\u22123.25. These changes are in their own months above" in page
    assert "not in Oct 2026, Nov 2026, to which the corrections are posted ( details )." in page


@pytest.mark.long
def test_a_record_without_a_period_is_in_no_balance(closed: Stores) -> None:
    publish(closed, usage=[*USAGE, used("v", "7.00", day=None)])
    balances = "SELECT count(*), sum(difference)::INTEGER FROM reconciliation.rollforward"
    before = closed.rows(balances)
    publish(closed, usage=[{**USAGE[0], "day": None}, *USAGE[1:]])
    assert closed.rows(balances)[0][1] == before[0][1] == 0


@pytest.mark.long
def test_an_amount_that_gains_a_digit_is_posted_exactly(taken: Stores) -> None:
    for amount in ("8.001", "8.00123"):
        restate(taken, amount, "7.00")
    posted = [(row[4], row[5]) for row in taken.rows(POSTED)]
    assert posted == [("8.00000", "3.00000"), ("8.00100", "0.00100"), ("8.00123", "0.00023")]


@pytest.mark.long
def test_a_correction_says_what_was_signed_off_though_an_earlier_month_is_open_again(
    closed: Stores,
) -> None:
    publish(closed, partners=partners([FIRST]), billing=BILLS)
    close(closed, OCTOBER)
    restate(closed, "6.00", "7.00")
    reopen_month(closed, OCTOBER, "cid", "an invoice was wrong")
    for amount in ("8.00", "5.00"):
        restate(closed, amount, "7.00")
    amounts = ("5.00", "6.00", "1.00", "11"), ("6.00", "8.00", "2.00", "10")
    back = ("8.00", "5.00", "-3.00", "10")
    assert [row[3:] for row in closed.rows(POSTED)] == [*amounts, back]


@pytest.mark.long
def test_a_record_that_comes_after_the_close_is_posted_and_taken_back(closed: Stores) -> None:
    for amount, day, net in (
        ("2.00", "2026-09-10", (1, "usage EUR +2.00")),
        ("3.00", "2026-09-10", (1, "usage EUR +3.00")),
        ("3.00", "2026-11-10", (0, None)),  # moved to a month that is open
    ):
        publish(closed, mapping=TERMS, usage=[*USAGE, used("new", amount, day=day)])
        sql = "SELECT changed_records, net_difference FROM reconciliation.closes"
        assert closed.rows(sql) == [net]
    posted = [(None, "2.00", "2.00", "10"), ("2.00", "3.00", "1.00", "10")]
    assert [row[3:] for row in closed.rows(POSTED)] == [*posted, ("3.00", None, "-3.00", "10")]


@pytest.mark.long
def test_what_cannot_be_read_now_is_no_correction_until_it_can_be(closed: Stores) -> None:
    sql = "SELECT state, changed_records, unread_records, net_difference FROM reconciliation.closes"
    restate(closed, "8.00", "7.00")
    odd_bill: Any = {**BILLS[0], "total": "?", "lines": [{**BILLS[0]["lines"][0], "amount": "?"}]}
    for records, bills in (
        ([{**USAGE[0], "amount": "n/a"}, *USAGE[1:]], BILLS),
        ([{**USAGE[0], "day": "30/09/2026", "amount": "9.00"}, *USAGE[1:]], BILLS),
        ([{**USAGE[0], "amount": "8.00"}, *USAGE[1:]], [odd_bill]),
    ):
        publish(closed, mapping=TERMS, usage=records, billing=bills)
        assert [row[5] for row in closed.rows(POSTED)] == ["3.00"]
        ((state, changed, unread, net),) = closed.rows(sql)
        assert (state, changed - unread) == ("outdated", int(records[0]["amount"] == "8.00"))
        assert net == (None if changed == unread else "usage EUR +3.00")
        with pytest.raises(
            ConfigurationError, match="1 record of 2026-09, which is closed, cannot"
        ):
            close_month(closed, *signing(OCTOBER))
    restate(closed, "9.00", "7.00", billing=BILLS)
    assert [row[5] for row in closed.rows(POSTED)] == ["3.00", "1.00"]
