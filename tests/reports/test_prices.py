"""The page and `report --json` say which prices changed, and by how much money."""

from decimal import Decimal
from itertools import pairwise
from random import Random

import pytest

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.prices import SHOWN, price_of
from pipelines.finance.reports.render import render_page
from pipelines.finance.reports.verdicts import judge
from tests.cli.conftest import Cli
from tests.reconcile.flux_books import (
    AUGUST,
    NOW,
    OF_PLANS,
    ROLES,
    Row,
    publish_now,
    publish_then_and_now,
    read_rows,
    with_roles,
)
from tests.reports.conftest import page_text
from tests.reports.test_lists import lists_of
from tests.versions.homes import Stores, home_of

MATERIALITY = "[materiality]\nEUR = 5\n"
CHEAPER = (
    Row("before", "10.00", month=AUGUST, plan="basic", partner="third"),
    Row("now", "8.00", plan="basic", partner="third"),
)
MONTHS = ("2026-04", "2026-05", "2026-06", "2026-07", "2026-08", "2026-09")


def publish_prices(stores: Stores) -> None:
    """Of 25 plans, the price rises by 0.00 to 2.40, each of ten units; of one, it falls by 0.20."""
    stores.configure()
    rows = (*OF_PLANS, *CHEAPER)
    publish_then_and_now(stores, rows, rows, with_roles() + MATERIALITY)


def configure(stores: Stores) -> None:
    """Configure a connection whose lists were never read."""
    stores.configure()


def publish_doubled(stores: Stores) -> None:
    """Usage of August had a double price, on both sides: nothing is out of balance."""
    stores.configure()
    rows = [
        Row(f"{month}{plan}", amount, month=month, plan=plan)
        for plan in ("daily", "rare")
        for month, amount in zip(MONTHS[2:], ("10.00", "10.00", "20.00", "10.00"), strict=True)
        if plan == "daily" or month != "2026-07"
    ]
    # Usage does not end before the month.
    read_rows(stores, NOW, [*rows, Row("newest", "1.00", month="2026-10", plan="other")])
    publish_now(stores, with_roles() + MATERIALITY)


stores = home_of(publish_prices)
doubled = home_of(publish_doubled)
bare_home = home_of(configure)


def test_the_largest_prices_are_shown_and_all_others_added_up(stores: Stores) -> None:
    prices = Cli(stores.home).json("report")["verdict"]["prices"]
    assert [
        (row["item"], row["price_before"], row["price"], row["effect"]) for row in prices["shown"]
    ] == [
        (f"plan {plan}, cpu, eu, h", "1.00000", f"{1 + plan / 10:.2f}000", f"{plan}.00")
        for plan in range(24, 24 - SHOWN, -1)
    ]
    assert {(row["month"], row["partner"], row["side"]) for row in prices["shown"]} == {
        ("2026-09", "first Ltd", "used and billed")
    }
    # The second partner has ten units of plan 24 for 1.00 each.
    assert {row["price_of_others"] for row in prices["shown"]} == {"1.00000", None}
    for side, others in zip(("used", "billed"), prices["others"], strict=True):
        assert (others["side"], others["number"]) == (side, 10)
        assert [
            (row["currency"], Decimal(row["amount"]), row["number"]) for row in others["above"]
        ] == [("EUR", Decimal(95), 10)]
        assert others["below"] == []
    text = page_text(stores)
    assert "used and billed EUR&nbsp;1.00 Aug 2026 3.40 1.00 +24.00" in text
    assert "used: 10 changes: EUR&nbsp;+95.00." in text
    assert "No price list is known" in text


def test_a_price_that_doubles_and_halves_is_shown_both_times(doubled: Stores) -> None:
    """As a question, in the month's line, and in a list; it is no break."""
    verdict = Cli(doubled.home).json("report")["verdict"]
    assert verdict["open_breaks"] == 0
    assert sorted(
        (row["item"], row["month_before"], row["month"], row["effect"])
        for row in verdict["prices"]["shown"]
    ) == [
        ("daily, cpu, eu, h", "2026-07", "2026-08", "10.00"),
        ("daily, cpu, eu, h", "2026-08", "2026-09", "-10.00"),
        ("rare, cpu, eu, h", "2026-06", "2026-08", "10.00"),
        ("rare, cpu, eu, h", "2026-08", "2026-09", "-10.00"),
    ]
    months = {tuple(each["months"]): each for each in verdict["months"]}
    september = months["2026-09-01",]
    assert (september["answer"], september["partners_with_new_prices"]) == ("balanced", 1)
    text = page_text(doubled)
    assert "Yes: balanced Average prices of 1 partner changed." in text
    assert "Aug 2026: why did 2 average prices change? Effect on what was used and billed: " in text
    assert "EUR&nbsp;+20.00. No break: usage and bill have the same price." in text
    assert [flux["month"] for flux in verdict["flux"]] == ["2026-09"]


@pytest.mark.parametrize("seed", [1, 2])
def test_each_price_that_changed_is_listed_once(bare_home: Stores, seed: int) -> None:
    """Whatever prices do: each is compared with that of the last month that has a quantity."""
    random = Random(seed)
    rows = []
    expected = set()
    for plan in map("plan {:02}".format, range(30)):
        priced = []
        for month in MONTHS:
            if random.random() < 0.7:
                quantity, price = random.randint(10, 99), random.choice((1, 2, 3))
                priced.append((month, quantity, price))
                amount = f"{quantity * price}.00"
                rows.append(Row(f"{plan}{month}", amount, quantity, month, plan))
        for (before, _units, old), (month, units, new) in pairwise(priced):
            if old != new:
                expected.add((plan, before, month, Decimal((new - old) * units)))
    read_rows(bare_home, NOW, rows)
    publish_now(bare_home, with_roles() + MATERIALITY)
    figures = read_figures_of_books(bare_home, with_details=True)
    listed = lists_of(render_page(figures))["prices"]["rows"]
    found = [
        (row["plan"], row["month_before"], row["month"], Decimal(row["effect"])) for row in listed
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected
    prices = judge(figures).prices
    shown = {(row.plan, f"{row.month:%Y-%m}", row.effect) for row in prices.shown}
    assert shown <= {(plan, month, effect) for plan, _before, month, effect in expected}
    assert len(shown) == SHOWN
    assert min(row.month for row in prices.shown).month >= 7


def test_without_a_plan_or_metric_no_price_is_known(stores: Stores) -> None:
    """The average of all is no price."""
    roles = [role for role in ROLES if role not in ("plan", "metric")]
    publish_now(stores, with_roles(roles) + MATERIALITY)
    figures = read_figures_of_books(stores)
    assert judge(figures).prices.shown == ()
    assert "prices that changed" not in page_text(stores)


def test_a_price_has_six_digits_or_those_of_its_currency() -> None:
    for amount, quantity, currency, price in (
        ("10.00", "3", "EUR", "3.33333"), ("2", "3", "EUR", "0.666667"),
        ("3703703.67", "3", "EUR", "1234567.89"), ("10000001", "8", "JPY", "1250000"),
        ("0.0005", "1200", "EUR", "4.16667E-7"),
    ):  # fmt: skip
        assert price_of(Decimal(amount), Decimal(quantity), currency) == Decimal(price)
