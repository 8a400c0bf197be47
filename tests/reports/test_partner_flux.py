"""The page and `report --json` say why a month is not like the last, and which months changed."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pipelines.finance.close import close_month
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_page
from pipelines.finance.reports.verdicts import judge
from tests.cli.conftest import Cli
from tests.reconcile.flux_books import (
    AUGUST,
    FIRST_ROWS,
    MONTHS,
    NOW,
    THEN,
    Row,
    publish_now,
    publish_then_and_now,
    read_rows,
)
from tests.reconcile.months import SERVICE
from tests.reports.conftest import page_text
from tests.reports.test_lists import lists_of
from tests.versions.homes import DAY, Stores, goes_on_from, home_of

A = Row("a", "100.00", month=AUGUST)
B = Row("b", "110.00")
SMALL = [
    Row(f"{partner}{month}", amount, month=month, partner=partner)
    for partner in ("second", "third", "fourth", "fifth")
    for month, amount in ((AUGUST, "10.00"), ("2026-09", "10.50"))
]
YEN = [Row("y", "700", partner="third", currency="JPY")]


def publish_flux(stores: Stores) -> None:
    """Publish two months of five partners, of which one has another price and a late record."""
    stores.configure(**SERVICE)
    then = [A, B, *SMALL, *YEN]
    publish_then_and_now(stores, then, [*then, Row("late", "3.00")])


@goes_on_from(publish_flux)
def publish_restated(stores: Stores) -> None:
    """Close September; then its usage and bill, and those of August, are restated alike."""
    close_month(stores, MONTHS[1], "ann", "bob")
    publish_now(stores)
    second = [replace(row, amount="12.00") if row.month == AUGUST else row for row in SMALL[:2]]
    restated = [A, replace(B, amount="125.00"), *second, *SMALL[2:], *YEN, Row("late", "3.00")]
    read_rows(stores, stores.clock.now + DAY, [*FIRST_ROWS, *restated])
    publish_now(stores)


def configure(stores: Stores) -> None:
    """Configure a connection whose lists were never read."""
    stores.configure(**SERVICE)


bare_home = home_of(configure)
flux_home = home_of(publish_flux)
restated_home = home_of(publish_restated)


def amounts(**values: str) -> dict[str, Decimal]:
    return {name: Decimal(value) for name, value in values.items()}


@pytest.mark.long
def test_the_largest_changes_come_first_and_the_rest_is_counted(flux_home: Stores) -> None:
    # Usage of September may be missing: the month before comes first.
    august, flux = judge(read_figures_of_books(flux_home)).flux
    assert august.month == MONTHS[0]
    assert (flux.month, flux.month_before) == (MONTHS[1], MONTHS[0])
    assert [(table.currency, table.side) for table in flux.tables] == [
        ("EUR", "used"), ("EUR", "billed"), ("JPY", "used"), ("JPY", "billed"),
    ]  # fmt: skip
    used = flux.tables[0]
    assert used.total.parts == amounts(late="3.00", price="12.00")
    first = used.rows[0]
    assert (first.partner, first.name, first.before, first.now) == (
        "first", "first Ltd", Decimal(100), Decimal(113),
    )  # fmt: skip
    assert first.parts == amounts(late="3.00", price="10.00")
    assert (len(used.rows), used.left_out, used.left_out_difference) == (3, 2, Decimal("1.00"))
    assert flux.tables[2].total.parts == amounts(new="700")


@pytest.mark.long
def test_page_and_json_have_the_same_flux(flux_home: Stores) -> None:
    text = page_text(flux_home)
    assert "Why is Sep 2026 not like Aug 2026?" in text
    assert "late records +3.00, price +10.00" in text.replace("\u00a0", " ").replace("&nbsp;", " ")
    _august, shown = Cli(flux_home.home).json("report")["verdict"]["flux"]
    assert shown["month"] == "2026-09"
    table = shown["tables"][0]
    assert table["total"]["parts"] == {"late": "3.00", "price": "12.0000"}
    assert table["partners"][0]["partner"] == "first Ltd"
    assert table["other_partners"] == 2


@pytest.mark.long
def test_a_plan_without_a_quantity_before_is_new_at_its_price(bare_home: Stores) -> None:
    """Flux has its amount in volume."""
    plans = [Row("kept", "50.00", month=month) for month in (AUGUST, "2026-09")]
    plans = [replace(row, id=f"{row.id}{row.month}") for row in plans]
    read_rows(bare_home, NOW, [*plans, Row("new", "30.00", plan="new"), replace(A, plan="gone")])
    publish_now(bare_home)
    flux = judge(read_figures_of_books(bare_home)).flux[-1]
    (total, _billed) = (table.total for table in flux.tables)
    assert (total.parts, total.new_items) == (amounts(volume="-70.00"), Decimal(30))
    text = page_text(bare_home).replace("&nbsp;", " ")
    assert "volume \u221270.00 (of it new at this price +30.00)" in text
    items = lists_of(render_page(read_figures_of_books(bare_home, with_details=True)))["items"]
    assert {"new", "gone"} <= {row["plan"] for row in items["rows"]}


@pytest.mark.long
def test_both_sides_restated_alike_are_shown(restated_home: Stores) -> None:
    changes = judge(read_figures_of_books(restated_home)).changed_months
    assert (changes.total, changes.closed) == (2, 1)
    closed, is_open = changes.rows
    assert (closed.partner, closed.month, closed.closed_at is None) == ("first", MONTHS[1], False)
    assert closed.before.as_json() == amounts(used="113", billed="113", difference="0")
    assert closed.now.as_json() == amounts(used="128", billed="128", difference="0")
    assert (is_open.partner, is_open.month, is_open.closed_at) == ("second", MONTHS[0], None)
    assert is_open.before.as_json() == amounts(used="10", billed="10", difference="0")
    assert is_open.now.as_json() == amounts(used="12", billed="12", difference="0")
    text = page_text(restated_home)
    assert "Change of the difference: none; used or billed changed in 2 months of partners" in text
    assert "unchanged" not in text
    assert "Months whose amounts changed: 2 of partners, 1 in closed months" in text
    assert "Sep 2026, closed first Ltd , EUR 113.00 128.00 113.00 128.00 0.00 0.00" in text


@pytest.mark.long
def test_what_was_known_before_history_is_not_known(bare_home: Stores) -> None:
    read_rows(bare_home, THEN, [A, B])
    read_rows(bare_home, NOW, [A, replace(B, amount="120.00")])
    publish_now(bare_home)
    (flux,) = judge(read_figures_of_books(bare_home)).flux
    table, _billed = flux.tables
    assert table.rows[0].parts == amounts(price="20.00")
    assert "restated records are not known before 06 Oct 2026" in page_text(bare_home)
    # A cell without text would look like zero.
    lists = lists_of(render_page(read_figures_of_books(bare_home, with_details=True)))
    for name in ("changes", "items"):
        rows = lists[name]["rows"]
        assert {(row["late"], row["restated"]) for row in rows} == {("not known", "not known")}


@pytest.mark.long
def test_a_home_of_one_month_has_no_flux(bare_home: Stores) -> None:
    read_rows(bare_home, THEN, [B])
    publish_now(bare_home)
    verdicts: Any = judge(read_figures_of_books(bare_home))
    assert (verdicts.flux, verdicts.changed_months.total) == ((), 0)
    assert "not like" not in page_text(bare_home)
