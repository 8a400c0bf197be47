"""Figures of a version are those of plain sums over its records, to the last digit."""

from contextlib import closing
from datetime import date
from decimal import Context, Decimal
from functools import reduce

import duckdb
import pytest

from pipelines.reconcile.statements import RULES
from pipelines.reports.queries import Figures, evaluate, read_figures
from pipelines.reports.render import render_report
from tests.publish.homes import Record, Stores
from tests.reconcile.books import publish
from tests.reports.conftest import BILLS, HUGE, USAGE, figures_of

EXACT = Context(prec=100)


def total(records: list[Record], field: str, currency: str) -> Decimal:
    amounts = [Decimal(each[field]) for each in records if each["currency"] == currency]
    return reduce(EXACT.add, amounts, Decimal(0))


@pytest.fixture
def figures(stores: Stores) -> Figures:
    return figures_of(stores)


def test_totals_of_a_currency_are_plain_sums(figures: Figures) -> None:
    counted = [each for each in BILLS if each["status"] == "paid" and each["kind"] == "invoice"]
    credits_ = [each for each in BILLS if each["kind"] == "credit"]
    currencies = figures.tables["currencies"]
    for each in currencies:
        sides = (USAGE, "amount"), (counted, "total"), (credits_, "total")
        used, billed, credit = (total(*side, each["currency"]) for side in sides)
        assert (each["used"], each["billed"], each["credited"]) == (used, billed, -credit)
        assert each["difference"] == EXACT.subtract(EXACT.subtract(billed, credit), used)
    assert [each["currency"] for each in currencies] == ["EUR", "KWD", "JPY"]
    assert currencies[0]["used"] > Decimal(HUGE)
    rows = [row for table in figures.tables.values() for row in table]
    assert float not in {type(value) for row in rows for value in row.values()}


def test_parts_add_up_to_the_totals(figures: Figures) -> None:
    tables = figures.tables
    eur = tables["currencies"][0]
    assert eur["not_due"] == Decimal("-3.00")
    parts = {
        name: sum(each["difference"] for each in tables[name] if each["currency"] == "EUR")
        for name in ("months", "partners")
    }
    assert parts["months"] == parts["partners"] + eur["not_due"] == eur["difference"]
    assert {each["total"] for each in tables["partners"]} == {len(tables["partners"])}
    open_breaks = sum(each["open_breaks"] for each in tables["currencies"])
    for name in ("severities", "ageing"):
        assert sum(each["breaks"] for each in tables[name]) == open_breaks


def test_the_most_severe_breaks_come_first(figures: Figures) -> None:
    found = [each["severity"] for each in figures.tables["breaks"]]
    assert found == sorted(found, key=["high", "medium", "low"].index)
    assert 0 < len(found) <= 5
    assert all(each["remedy"] for each in figures.tables["breaks"])


def test_bills_set_apart_late_usage_and_gaps(figures: Figures) -> None:
    apart = [(each["reason"], each["bills"], each["amount"]) for each in figures.tables["apart"]]
    assert apart == [("credit note", 1, Decimal("-1.50")), ("void", 1, Decimal("4.40"))]
    (late,) = figures.tables["late"]
    days = (date(2026, 9, 10) - date(1, 2, 1)).days
    assert (late["rows"], late["late_rows"], late["lag_max"]) == (len(USAGE), 2, days)
    assert {each["partner"] for each in figures.tables["gaps"]} == {"first", "bidi"}


def test_proofs_and_time(figures: Figures, stores: Stores) -> None:
    proofs = [(row["stream"], row["complete"], row["rows"]) for row in figures.tables["proofs"]]
    assert proofs == [("partners", True, 4), ("usage", True, 9), ("billing", True, 9)]
    ((oldest,),) = stores.rows("SELECT min(last_scan_ended_at) FROM meta.freshness")
    assert figures.tables["as_of"] == [{"as_of": oldest}]


def test_a_chart_has_every_month_up_to_the_newest_credible_one(figures: Figures) -> None:
    trend = [(row["currency"], f"{row['month']:%y-%m}") for row in figures.tables["trend"]]
    eur = [("EUR", f"26-{month}") for month in ("07", "08", "09", "10", "11")]
    assert trend == [*eur, ("KWD", "26-09"), ("JPY", "26-09")]
    assert figures.tables["trend"][1]["used"] == Decimal(0)
    beside = [(row["currency"], row["month"]) for row in figures.tables["beside"]]
    assert beside == [("KWD", date(9999, 12, 1)), ("KWD", date(1, 2, 1))]
    recent = {row["month"] for row in figures.tables["recent"]}
    assert recent == {date(2026, month, 1) for month in (7, 9, 11)}


def test_a_chart_has_at_most_120_months() -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE as_of AS SELECT NULL::TIMESTAMPTZ AS as_of")
        db.execute("CREATE TABLE currencies AS SELECT NULL::VARCHAR AS currency")
        years = "range(DATE '2000-11-01', DATE '2027-01-01', INTERVAL 1 YEAR)"
        amounts = "0.00 AS used, 0.00 AS billed, 0.00 AS difference"
        db.execute(
            f"CREATE TABLE months AS SELECT NULL::VARCHAR AS currency, unnest({years})::DATE "
            f"AS month, {amounts}"
        )
        months = [row["month"] for row in evaluate(db, "trend")]
    assert (len(months), months[0], months[-1]) == (109, date(2017, 11, 1), date(2026, 11, 1))


def test_breaks_of_a_list_that_is_not_proven_complete_are_apart(stores: Stores) -> None:
    before = figures_of(stores).tables
    publish(stores, complete=False, billing=BILLS)
    tables = figures_of(stores, 3).tables
    assert [each["stream"] for each in tables["proofs"] if not each["complete"]] == ["billing"]
    assert {each["reason"] for each in tables["uncertain"]} == {"billing is not proven complete"}
    uncertain, still_open, all_open = (
        sum(each["breaks"] for each in rows)
        for rows in (tables["uncertain"], tables["severities"], before["severities"])
    )
    assert uncertain > 0
    assert uncertain + still_open == all_open
    assert sum(each["open_breaks"] for each in tables["currencies"]) == still_open


def test_every_rule_that_could_not_be_checked_is_named(stores: Stores) -> None:
    path = stores.warehouse.versions()[1].path
    path.chmod(0o600)
    with closing(duckdb.connect(path)) as db:
        db.execute(
            "UPDATE reconciliation.rules SET evaluated = false, reason = 'usage.id is not mapped' "
            f"WHERE rules.rule IN {RULES}"
        )
        figures = read_figures(db, 2)
    page = render_report(figures)
    assert len(figures.tables["not_checked"]) == len(RULES)
    for rule in RULES:
        assert f"Not checked: {figures.rules[rule]['question']} usage.id is not mapped." in page
