"""Figures of a version are those of plain sums over its records, to the last digit."""

import dataclasses
from collections.abc import Iterator
from datetime import date
from decimal import Context, Decimal
from typing import Any

import pytest

from pipelines.reconcile.statements import RULES
from pipelines.reports.figures import CHECKS, Earlier, Figures, Month
from tests.publish.homes import Record, Stores
from tests.reconcile.books import publish
from tests.reports.conftest import BILLS, HUGE, USAGE, figures_of

EXACT = Context(prec=100)


def total(records: list[Record], field: str, currency: str) -> Decimal:
    amounts = [Decimal(each[field]) for each in records if each["currency"] == currency]
    result = Decimal(0)
    for amount in amounts:
        result = EXACT.add(result, amount)
    return result


def values(thing: Any) -> Iterator[Any]:
    """Yield every value in a tree of dataclasses, lists and dictionaries."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        thing = {each.name: getattr(thing, each.name) for each in dataclasses.fields(thing)}
    if isinstance(thing, dict):
        thing = [*thing.keys(), *thing.values()]
    if isinstance(thing, list):
        for each in thing:
            yield from values(each)
    else:
        yield thing


@pytest.fixture
def figures(stores: Stores) -> Figures:
    return figures_of(stores)


def test_totals_of_a_currency_are_plain_sums(figures: Figures) -> None:
    counted = [each for each in BILLS if each["status"] == "paid" and each["kind"] == "invoice"]
    credits_ = [each for each in BILLS if each["kind"] == "credit"]
    for each in figures.currencies:
        assert each.currency
        sides = (USAGE, "amount"), (counted, "total"), (credits_, "total")
        used, billed, credit = (total(*side, each.currency) for side in sides)
        assert (each.used, each.billed, each.credited) == (used, billed, -credit)
        difference = EXACT.subtract(EXACT.subtract(billed, credit), used)
        assert each.difference == difference
    assert [each.currency for each in figures.currencies] == ["EUR", "KWD", "JPY"]
    assert figures.currencies[0].not_due == Decimal("-3.00")
    assert figures.currencies[0].used > Decimal(HUGE)


def test_no_value_is_a_float(figures: Figures) -> None:
    kinds = {type(each) for each in values(figures)}
    assert Decimal in kinds
    assert float not in kinds


def test_parts_add_up_to_the_totals(figures: Figures) -> None:
    eur = figures.currencies[0]
    months = [each.difference for each in figures.months if each.currency == "EUR"]
    assert sum(months) == eur.difference
    found = [each["difference"] for each in figures.partners if each["currency"] == "EUR"]
    assert sum(found) + eur.not_due == eur.difference
    assert {each["total"] for each in figures.partners} == {len(figures.partners)}
    open_breaks = sum(each["breaks"] for each in figures.severities)
    assert open_breaks == sum(each.open_breaks for each in figures.currencies)
    assert open_breaks == sum(each["breaks"] for each in figures.ageing)


def test_the_page_knows_every_rule() -> None:
    assert CHECKS == RULES


def test_the_most_severe_breaks_come_first(figures: Figures) -> None:
    levels = ["high", "medium", "low"]
    found = [levels.index(each["severity"]) for each in figures.breaks]
    assert found == sorted(found)
    assert 0 < len(figures.breaks) <= 5
    assert all(each["remedy"] for each in figures.breaks)


def test_bills_set_apart_late_usage_and_gaps(figures: Figures) -> None:
    apart = [(each["reason"], each["bills"], each["amount"]) for each in figures.apart]
    assert apart == [("credit note", 1, Decimal("-1.50")), ("void", 1, Decimal("4.40"))]
    late = [(each["rows"], each["late_rows"], each["lag_max"]) for each in figures.late]
    assert late == [(len(USAGE), 2, (date(2026, 9, 10) - date(1, 2, 1)).days)]
    assert {each["partner"] for each in figures.gaps} == {"first", "bidi"}


def test_proofs_and_time(figures: Figures, stores: Stores) -> None:
    proofs = [(each.stream, each.complete, each.rows) for each in figures.proofs]
    assert proofs == [("partners", True, 4), ("usage", True, 9), ("billing", True, 9)]
    ((oldest,),) = stores.rows("SELECT min(last_scan_ended_at) FROM meta.freshness")
    assert figures.as_of == oldest


def test_a_chart_has_every_month_up_to_the_newest_credible_one(figures: Figures) -> None:
    eur = [(f"{each.month:%m}", each.used) for each in figures.trend("EUR")]
    assert [month for month, _used in eur] == ["07", "08", "09", "10", "11"]
    assert eur[1] == ("08", Decimal(0))
    assert [each.month for each in figures.trend("KWD")] == [date(2026, 9, 1)]
    beside = [(each.currency, each.month) for each in figures.beside_charts]
    assert beside == [("KWD", date(9999, 12, 1)), ("KWD", date(1, 2, 1))]


def test_a_chart_has_at_most_120_months(figures: Figures) -> None:
    none = Decimal(0)
    days = [date(year, 11, 1) for year in range(2000, 2027)]
    long = dataclasses.replace(
        figures, months=[Month("EUR", day, none, none, none) for day in days]
    )
    assert len(long.trend("EUR")) == 108 + 1
    assert long.trend("EUR")[0].month == date(2017, 11, 1)
    assert long.trend("USD") == []


def test_change_since_another_version(stores: Stores, figures: Figures) -> None:
    before = {each.currency: each.difference for each in figures_of(stores, 1).currencies}
    eur, kwd, _jpy = figures.currencies
    earlier = Earlier("version 1", before)
    assert (earlier.change(eur), earlier.change(kwd)) == (Decimal("0.05"), Decimal(0))
    assert Earlier("nothing", {}).change(kwd) == kwd.difference


def test_breaks_of_a_list_that_is_not_proven_complete_are_apart(stores: Stores) -> None:
    before = figures_of(stores)
    publish(stores, complete=False, billing=BILLS)
    figures = figures_of(stores, 3)
    assert [each.stream for each in figures.partial] == ["billing"]
    assert {each["reason"] for each in figures.uncertain} == {"billing is not proven complete"}
    uncertain = sum(each["breaks"] for each in figures.uncertain)
    open_breaks = sum(each["breaks"] for each in figures.severities)
    assert uncertain > 0
    assert uncertain + open_breaks == sum(each["breaks"] for each in before.severities)
    assert sum(each.open_breaks for each in figures.currencies) == open_breaks
