"""Figures of a version are those of plain sums over its records, to the last digit."""

import re
from collections import Counter
from datetime import date
from decimal import Context, Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from pipelines.finance.breaks import BreakFilter, list_breaks, totals
from pipelines.finance.reconcile.statements import RULES
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.render import render_report
from pipelines.finance.reports.text import format_amount
from pipelines.finance.reports.verdicts import judge
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row
from tests.cli.conftest import Cli
from tests.reconcile.books import bill, line, partners, publish, used
from tests.reports.conftest import BILLS, HUGE, USAGE, figures_of, text_of
from tests.versions.homes import Record, Stores, home_of

EXACT = Context(prec=100)


def total(records: list[Record], field: str, currency: str) -> Decimal:
    amounts = [Decimal(each[field]) for each in records if each["currency"] == currency]
    return reduce(EXACT.add, amounts, Decimal(0))


def values(figures: Figures, table: str, *names: str) -> list[Any]:
    """Return values of the rows of a table: tuples, or those of one column."""
    rows = figures.tables[table]
    return [row[names[0]] if len(names) == 1 else tuple(map(row.get, names)) for row in rows]


@pytest.mark.long
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


def check_sums(figures: Figures, of: Row) -> None:
    """Compare the parts of a currency with its totals."""
    tables = ("months", "partners", "recent", "reasons", "ageing", "open_breaks")
    shown = {
        table: [row for row in figures.tables[table] if row["currency"] == of["currency"]]
        for table in tables
    }
    assert EXACT.add(of["open"], of["other"]) == of["difference"]
    assert min(of["overbilled"], of["unbilled"]) >= 0
    assert EXACT.subtract(of["overbilled"], of["unbilled"]) == of["open"]
    sums = {
        name: sum((row["difference"] or 0 for row in rows), Decimal(0))
        for name, rows in shown.items()
    }
    assert sums["months"] == sums["recent"] == sums["reasons"] == of["difference"]
    for column, total in (("more", of["overbilled"]), ("less", EXACT.minus(of["unbilled"]))):
        assert sum((row[column] or 0 for row in shown["partners"]), Decimal(0)) == total
    assert sums["partners"] == sums["ageing"] == sums["open_breaks"] == of["open"]
    assert {row["place"] for row in shown["reasons"]} <= {row["place"] for row in shown["recent"]}
    for month in shown["recent"]:
        parts = [row for row in shown["reasons"] if row["place"] == month["place"]]
        assert sum(row["difference"] for row in parts) == (month["difference"] or 0)
    parts = [row for row in shown["reasons"] if row["reason"] == "open breaks"]
    assert sum(row["difference"] for row in parts) == of["open"]
    assert sum(row["number"] for row in parts) == of["open_breaks"]


def test_parts_add_up_to_the_totals(figures: Figures, many: Stores) -> None:
    for each in (figures, figures_of(many, 1)):
        for row in each.tables["currencies"]:
            check_sums(each, row)
        open_breaks = sum(values(each, "currencies", "open_breaks"))
        assert sum(values(each, "severities", "breaks")) == open_breaks
        assert sum(values(each, "ageing", "breaks")) == open_breaks


AGES = {7: "0 to 7 days", 30: "8 to 30 days", 60: "31 to 60 days", 90: "61 to 90 days"}


def test_open_breaks_are_counted_by_their_age(many: Stores) -> None:
    figures = figures_of(many, 1)
    counted = Counter[tuple[str, str]]()
    for row in figures.tables["open_breaks"]:
        days = next(
            (name for most, name in AGES.items() if row["age_days"] <= most), "over 90 days"
        )
        counted[row["currency"], days] += 1
    shown = {row[:2]: row[2] for row in values(figures, "ageing", "currency", "days", "breaks")}
    assert shown == counted
    assert {days for _currency, days in shown} == {"31 to 60 days", "61 to 90 days", "over 90 days"}
    page = text_of(render_report(figures))
    assert "0 to 7 days 8 to 30 days 31 to 60 days 61 to 90 days over 90 days All" in page


def test_breaks_bills_set_apart_late_usage_gaps_and_proofs(
    figures: Figures, stores: Stores
) -> None:
    severities = values(figures, "open_breaks", "severity")
    assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert len(severities) == len(figures.breaks) - 1 > 4  # one is no longer found
    assert all(values(figures, "open_breaks", "remedy"))
    apart = [("credit note", 1, Decimal("-1.50")), ("void", 1, Decimal("4.40"))]
    assert values(figures, "apart", "reason", "number", "difference") == apart
    late = [(len(USAGE), 4, (date(2026, 9, 10) - date(1, 2, 1)).days)]
    assert values(figures, "late", "rows", "late_rows", "lag_max") == late
    assert set(values(figures, "gaps", "partner")) == {"first", "second", "bidi"}
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
    odd = [("KWD", date(9999, 12, 1)), ("KWD", date(1, 2, 1)), ("JPY", date(2016, 9, 1))]
    assert values(figures, "beside", "currency", "month") == odd
    recent = {None, *(date(2026, month, 1) for month in (9, 10, 11))}
    assert set(values(figures, "recent", "month")) == recent


@pytest.mark.long
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
    folder = BooksFolder(stores.warehouse)
    version = stores.warehouse.require_published()
    with folder.write(version, folder.newest_of(2)) as (_books, db):
        db.execute(
            "UPDATE reconciliation.rules SET evaluated = false, reason = 'usage.id is not mapped' "
            f"WHERE rules.rule IN {RULES}"
        )
    found = figures_of(stores)
    page = render_report(found)
    assert len(found.tables["not_checked"]) == len(RULES)
    for rule in RULES:
        assert f"Not checked: {found.rules[rule]['question']} usage.id is not mapped." in page


# Currencies and how many months of each have usage that is on no bill.
WRONG_MONTHS = {"AUD": 0, "BHD": 1, "CHF": 0, "DKK": 3, "EUR": 6, "GBP": 2, "JPY": 4, "SEK": 0}
OLD = "2001-01-10"  # before the first month of a chart


def many_currencies() -> tuple[list[Record], list[Record]]:
    """Return usage and bills: the fewer breaks, the more rows. The worst of EUR is an old month.

    A bill and a record of usage are of an unknown partner.
    """
    usage = [used("old", "999.00", currency="EUR", day=OLD), used("p", "688.95", currency="AUD")]
    usage += [used("q", "3.00", currency="JPY", partner="nobody"), used("r", "4.00")]
    bills: list[Record] = [bill("p", line("p", "688.95"), currency="AUD", partner="nobody")]
    bills += [bill("q", line("q", "3.00"), currency="JPY"), bill("r", line("r", "4.00"))]
    usage.append(used("s", "2.00", currency="CHF", day="2026-10-01"))
    bills.append(bill("s", line("s", "2.00"), currency="CHF"))
    for currency, wrong in WRONG_MONTHS.items():
        about = {"currency": currency}
        bills.append(bill(f"{currency} note", line(None, "1.00"), kind="credit", **about))
        bills += [bill(f"{currency} {at}", line(None), status="void", **about) for at in range(3)]
        for at in range(8):
            name, month = f"{currency} {at}", f"2026-0{at + 1}"
            usage.append(used(name, f"{at + 5}.00", day=f"{month}-10", **about))
            if at < 8 - wrong:
                bills.append(
                    bill(f"b {name}", line(name, f"{at + 5}.00"), month=f"{month}-01", **about)
                )
    return usage, bills


def publish_many(stores: Stores) -> None:
    stores.configure()
    usage, bills = many_currencies()
    publish(stores, partners=partners(["first"]), usage=usage, billing=bills)


many = home_of(publish_many)


def test_no_currency_with_open_breaks_lacks_its_chart_or_its_worst_month(many: Stores) -> None:
    usage, bills = many_currencies()
    figures = figures_of(many, 1)
    page = render_report(figures)
    order = ["EUR", "JPY", "DKK", "GBP", "AUD", "BHD", "CHF", "SEK"]
    for table in ("currencies", "ageing"):
        shown = [each for each in order if each in values(figures, table, "currency")]
        assert list(dict.fromkeys(values(figures, table, "currency"))) == shown
    charts = list(dict.fromkeys(values(figures, "trend", "currency")))
    assert charts == order[:6]  # those with open breaks
    assert re.findall(r"<h3>([A-Z]{3})</h3>", page) == charts
    months = {
        (each["currency"], each["month"])
        for table in ("trend", "beside")
        for each in figures.tables[table]
    }
    for currency in (each for each, wrong in WRONG_MONTHS.items() if wrong):
        billed = {each["lines"][0]["usage"] for each in bills}
        missing = [e for e in usage if e["currency"] == currency and e["id"] not in billed]
        worst = max(missing, key=lambda each: Decimal(each["amount"]))["day"]
        assert (currency, date.fromisoformat(worst).replace(day=1)) in months
    apart = values(figures, "apart", "reason", "currency", "counts", "number")
    notes = [("credit note", currency, True, 1) for currency in sorted(order)]
    assert apart == notes + [("void", currency, False, 3) for currency in sorted(order)]
    beside = figures.tables["beside"]
    assert beside[0]["total"] == len(beside)
    assert all(each["difference"] for each in beside)


def test_breaks_without_those_of_unknown_partners_add_up_to_the_difference(many: Stores) -> None:
    figures = figures_of(many, 1)
    page = re.sub("[\u2007\u2008\u2060]", "", render_report(figures))
    breaks = list_breaks(many, BreakFilter()).breaks.to_pylist()
    sums = {each["currency"]: each for each in totals(breaks)}
    unknown = {"AUD": Decimal("688.95"), "JPY": Decimal("-3.00")}
    for each in figures.tables["currencies"]:
        currency, rest = each["currency"], each["difference"] - each["credited"]
        if currency not in sums:
            assert rest == 0
            continue
        whole, part = sums[currency]["difference"], sums[currency]["unknown_partners"]
        assert part["difference"] == unknown.get(currency, 0)
        assert rest == whole - part["difference"]
        amount = format_amount(whole, currency, signed=True)
        find = f'data-find="breaks?state=none&amp;currency={currency}" data-sums="difference"'
        assert f'<td class="total" data-label="All"><span {find}>{amount}</span>' in page
        left = format_amount(each["difference"] - whole, currency, signed=True)
        row = page.partition(f">{currency}</th>")[2].partition("</tr>")[0]
        assert f'<td data-label="Other differences">{left}</td>' in row
    printed = Cli(many.home)("breaks").stdout
    assert "AUD: 688.95 in 1 break, of which 688.95 of unknown partners" in printed
    assert "includes breaks of unknown partners." in printed


def test_partners_that_are_in_no_list_are_counted_apart(many: Stores) -> None:
    figures = figures_of(many, 1)
    verdicts = judge(figures)
    assert (verdicts.partners, verdicts.unknown_partners) == (1, 1)
    said = f"{verdicts.open_breaks} open breaks with 1 partner and 1 unknown partner: "
    assert said in text_of(render_report(figures))


def test_other_differences_have_their_reasons(many: Stores, figures: Figures) -> None:
    found = figures_of(many, 1)
    named = values(found, "reasons", "reason", "currency", "difference")
    counterpart = "unknown partner (opposite amount, at the known partner)"
    assert sorted(row[1:] for row in named if row[0] == counterpart) == [
        ("AUD", Decimal("-688.95")),
        ("JPY", Decimal("3.00")),
    ]
    assert (
        "unknown partner nobody</bdi> (the matching usage or bill names <bdi>first Ltd</bdi>)"
        in render_report(found)
    )
    assert "has the opposite amounts, so both cancel." in text_of(render_report(found))
    assert ("not due yet", Decimal("-3.00")) in values(figures, "reasons", "reason", "difference")


def test_what_is_not_shown_is_summed_up(many: Stores) -> None:
    figures = figures_of(many, 1)
    left = figures.tables["open_breaks"][10:]
    assert len(left) == len(figures.breaks) - 10 > 0
    page = text_of(render_report(figures))
    eur = [row["difference"] for row in left if row["currency"] == "EUR"]
    above, below = (sum(each for each in eur if each * sign > 0) for sign in (1, -1))
    signed = [format_amount(each, "EUR", signed=True) for each in (above, below) if each]
    assert f"{len(left)} open breaks not shown: EUR&nbsp;{' and '.join(signed)}" in page


def test_breaks_that_cancel_do_not_hide_each_other(tmp_path: Path) -> None:
    """Neither among the partners, nor among the breaks that are not shown."""
    stores = Stores.open(tmp_path / "home")
    stores.configure()
    names = ["even", *(f"p{at}" for at in range(10))]
    usage = [used("a", "9000.00", partner="even"), used("b", "1.00", partner="p0")]
    bills = [bill(name, line(name, "50.00"), partner=name) for name in names[2:-1]]
    bills.append(bill("c", line("c", "9000.00"), partner="even"))
    bills.append(bill("d", line("d", "1.00"), partner="p9"))
    publish(stores, partners=partners(names), usage=usage, billing=bills)
    figures = read_figures_of_books(stores, with_details=True)
    assert values(figures, "partners", "partner")[0] == "even"
    (listed,) = [each for each in figures.details if each.listing.name == "partners"]
    assert listed.columns["partner_id"][0] == "even"
    page = text_of(render_report(figures))
    assert "2 open breaks not shown: EUR&nbsp;+1.00 and \u22121.00" in page


def test_a_month_that_is_out_of_balance_names_its_cause(many: Stores) -> None:
    sql = "SELECT partner_id, month(month), currency, cause FROM finance.partner_months WHERE {}"
    assert many.rows(sql.format("(cause IS NULL) = (verdict IN ('out of balance', 'fees'))")) == []
    note, unknown = "credit note", "unknown partner nobody"
    found = many.rows(sql.format("cause IS NOT NULL AND open_breaks = 0"))
    assert sorted(found) == [
        ("first", 9, "AUD", unknown),
        *(("first", 9, currency, note) for currency in ("BHD", "CHF", "DKK", "EUR", "GBP")),
        ("first", 9, "JPY", unknown),
        ("first", 9, "SEK", note),
        ("first", 10, "CHF", "usage, its bill or a credit note are of two months"),
    ]
    with_breaks = {cause for *_, cause in many.rows(sql.format("open_breaks > 0"))}
    assert with_breaks == {
        "missing on the bill",
        "no bill for the month",
        "billing of an unknown partner",
        "usage of an unknown partner",
    }


def test_the_page_has_whole_sentences_and_one_name_for_each_amount(figures: Figures) -> None:
    page = re.sub(r"<style>.*</style>", "", render_report(figures), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", page))
    assert not re.search(r"[a-z]\.[A-Z]", text)  # no space between two sentences
    assert not re.search(
        r"less credit notes|FROM |in no chart:|waits for|a tenth|cut-off|\blost\b", text
    )
    (late,) = figures.tables["late"]
    days = f"99 were recorded at most {late['suggested_grace_days']:,} days after it"
    assert re.search(rf"1 day after its month \(note\S*\d\)\. Of 100 records, {days}", text)
