"""The page and `report --json` say which prices changed, and by how much money."""

from decimal import Decimal

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.prices import price_of
from pipelines.finance.reports.verdicts import judge
from tests.cli.conftest import Cli
from tests.reconcile.flux_books import (
    AUGUST,
    OF_PLANS,
    ROLES,
    Row,
    publish_now,
    publish_then_and_now,
    with_roles,
)
from tests.reports.conftest import page_text
from tests.versions.homes import Stores, home_of

MATERIALITY = "[materiality]\nEUR = 5\n"
CHEAPER = (
    Row("before", "10.00", month=AUGUST, plan="basic", partner="third"),
    Row("now", "8.00", plan="basic", partner="third"),
)


def publish_prices(stores: Stores) -> None:
    """Of 25 plans, the price rises by 0.00 to 2.40, each of ten units; of one, it falls by 0.20."""
    stores.configure()
    rows = (*OF_PLANS, *CHEAPER)
    publish_then_and_now(stores, rows, rows, with_roles() + MATERIALITY)


stores = home_of(publish_prices)


def test_the_largest_prices_are_shown_and_all_others_added_up(stores: Stores) -> None:
    prices = Cli(stores.home).json("report")["verdict"]["prices"]
    assert [
        (row["item"], row["price_before"], row["price"], row["effect"]) for row in prices["shown"]
    ] == [
        (f"plan {plan}, cpu, eu, h", "1.00000", f"{1 + plan / 10:.2f}000", f"{plan}.0000")
        for plan in range(24, 18, -1)
    ]
    assert {(row["month"], row["partner"], row["side"]) for row in prices["shown"]} == {
        ("2026-09", "first Ltd", "used and billed")
    }
    for side, others in zip(("used", "billed"), prices["others"], strict=True):
        assert (others["side"], others["number"]) == (side, 19)
        assert [
            (row["currency"], Decimal(row["amount"]), row["number"]) for row in others["above"]
        ] == [("EUR", Decimal(171), 18)]
        assert [Decimal(row["amount"]) for row in others["below"]] == [-2]
    text = page_text(stores)
    assert "used and billed EUR&nbsp;1.00 3.40 +24.00" in text
    assert (
        "used: 19 changes, also of rounding alone: EUR&nbsp;+171.00; EUR&nbsp;\u22122.00." in text
    )
    assert "No price list is known" in text


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
