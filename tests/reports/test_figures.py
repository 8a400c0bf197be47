"""Figures of a version are those of plain sums over its records, to the last digit."""

from datetime import date
from decimal import Context, Decimal
from functools import reduce
from typing import Any

import duckdb

from pipelines.reconcile.statements import RULES
from pipelines.reports.queries import Figures, read_figures
from pipelines.reports.render import render_report
from tests.publish.homes import Record, Stores
from tests.reconcile.books import publish
from tests.reports.conftest import BILLS, HUGE, USAGE, figures_of

EXACT = Context(prec=100)


def total(records: list[Record], field: str, currency: str) -> Decimal:
    amounts = [Decimal(each[field]) for each in records if each["currency"] == currency]
    return reduce(EXACT.add, amounts, Decimal(0))


def values(figures: Figures, table: str, *names: str) -> list[Any]:
    """Return values of the rows of a table: tuples, or those of one column."""
    rows = figures.tables[table]
    return [row[names[0]] if len(names) == 1 else tuple(map(row.get, names)) for row in rows]


def test_totals_of_a_currency_are_plain_sums(figures: Figures) -> None:
    counted = [each for each in BILLS if each["status"] == "paid" and each["kind"] == "invoice"]
    credits_ = [each for each in BILLS if each["kind"] == "credit"]
    for each in figures.tables["currencies"]:
        sides = (USAGE, "amount"), (counted, "total"), (credits_, "total")
        used, billed, credit = (total(*side, each["currency"]) for side in sides)
        assert (each["used"], each["billed"], each["credited"]) == (used, billed, -credit)
        assert each["difference"] == EXACT.subtract(EXACT.subtract(billed, credit), used)
    assert values(figures, "currencies", "currency") == ["EUR", "KWD", "JPY"]
    assert values(figures, "currencies", "used")[0] > Decimal(HUGE)
    rows = [row for table in figures.tables.values() for row in table]
    assert float not in {type(value) for row in rows for value in row.values()}


def test_parts_add_up_to_the_totals(figures: Figures) -> None:
    eur = figures.tables["currencies"][0]
    months, partners = (
        sum(
            amount
            for currency, amount in values(figures, table, "currency", "difference")
            if currency == "EUR"
        )
        for table in ("months", "partners")
    )
    assert eur["not_due"] == Decimal("-3.00")
    assert months == partners + eur["not_due"] == eur["difference"]
    assert set(values(figures, "partners", "total")) == {len(figures.tables["partners"])}
    open_breaks = sum(values(figures, "currencies", "open_breaks"))
    assert sum(values(figures, "severities", "breaks")) == open_breaks
    assert sum(values(figures, "ageing", "breaks")) == open_breaks


def test_breaks_bills_set_apart_late_usage_gaps_and_proofs(
    figures: Figures, stores: Stores
) -> None:
    severities = values(figures, "breaks", "severity")
    assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert 0 < len(severities) <= 5
    assert all(values(figures, "breaks", "remedy"))
    apart = [("credit note", 1, Decimal("-1.50")), ("void", 1, Decimal("4.40"))]
    assert values(figures, "apart", "reason", "bills", "amount") == apart
    late = [(len(USAGE), 4, (date(2026, 9, 10) - date(1, 2, 1)).days)]
    assert values(figures, "late", "rows", "late_rows", "lag_max") == late
    assert set(values(figures, "gaps", "partner")) == {"first", "bidi"}
    proofs = [("partners", True, 4), ("usage", True, 11), ("billing", True, 9)]
    assert values(figures, "proofs", "stream", "complete", "rows") == proofs
    oldest = stores.rows("SELECT min(last_scan_ended_at) FROM meta.freshness")
    assert values(figures, "as_of", "as_of") == [*oldest[0]]


def test_a_chart_has_every_month_up_to_the_newest_credible_one(figures: Figures) -> None:
    eur = [("EUR", date(2026, month, 1)) for month in range(7, 13)]
    *trend, last = values(figures, "trend", "currency", "month")
    kwd, jpy = ("KWD", date(2026, 9, 1)), ("JPY", date(2016, 10, 1))
    assert (trend[:8], last) == ([*eur, kwd, jpy], ("JPY", date(2026, 9, 1)))
    assert len(trend) + 1 == len(eur) + 1 + 120
    assert values(figures, "trend", "used")[1] == Decimal(0)
    odd = [("KWD", date(9999, 12, 1)), ("JPY", date(2016, 9, 1)), ("KWD", date(1, 2, 1))]
    assert values(figures, "beside", "currency", "month") == odd
    recent = {date(2016, 10, 1), date(2026, 7, 1), date(2026, 9, 1)}
    assert set(values(figures, "recent", "month")) == recent


def test_uncertain_breaks_are_apart(figures: Figures, stores: Stores) -> None:
    publish(stores, complete=False, billing=BILLS)
    found = figures_of(stores, 3)
    assert values(found, "proofs", "complete") == [True, True, False]
    assert set(values(found, "uncertain", "reason")) == {"billing is not proven complete"}
    before, still_open, uncertain = (
        sum(values(each, table, "breaks"))
        for each, table in ((figures, "severities"), (found, "severities"), (found, "uncertain"))
    )
    assert before - still_open == uncertain > 0
    assert sum(values(found, "currencies", "open_breaks")) == still_open
    assert "because billing is not proven complete." in render_report(found)


def test_every_rule_that_could_not_be_checked_is_named(stores: Stores) -> None:
    path = stores.warehouse.versions()[1].path
    path.chmod(0o600)
    with duckdb.connect(path) as db:
        db.execute(
            "UPDATE reconciliation.rules SET evaluated = false, reason = 'usage.id is not mapped' "
            f"WHERE rules.rule IN {RULES}"
        )
        found = read_figures(db, 2)
    page = render_report(found)
    assert len(found.tables["not_checked"]) == len(RULES)
    for rule in RULES:
        assert f"Not checked: {found.rules[rule]['question']} usage.id is not mapped." in page
