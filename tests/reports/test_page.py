"""The page: foreign text cannot act in it, amounts are exact, and it says what is not known."""

import re
import stat
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.app.maintenance import rollback
from pipelines.app.nightly import build_with_books
from pipelines.finance.close import close_month
from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.render import render_report
from pipelines.finance.reports.text import format_amount
from pipelines.finance.reports.verdicts import judge
from pipelines.warehouse.duckdb_file import Row
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, bill, home_with, line, publish, used
from tests.reports.conftest import BILLS, EARLIER, HUGE, USAGE, figures_of, page_text, text_of
from tests.versions.homes import Reading, Record, Stores, read


def test_amounts_are_exact() -> None:
    for amount, currency, shown in (
        ("-1234567.5", "EUR", "\u22121,234,567.50"),
        ("1234", "JPY", "+1,234"),
        ("1.5", "KWD", "+1.500"),
        ("1.005", "EUR", "+1.005"),  # a digit more than the currency has: never rounded
        ("1.5", None, "+1.50"),
        ("0.000", "EUR", "0.00"),
        ("-0.000", "JPY", "0"),
        (HUGE, "EUR", f"+{Decimal(HUGE):,f}"),
        ("1E+3", "JPY", "+1,000"),
    ):
        assert format_amount(Decimal(amount), currency, signed=True) == shown
    assert format_amount(None, "EUR") == "not known"


def test_the_page_says_what_it_is_about_and_foreign_text_cannot_act(figures: Figures) -> None:
    page = render_report(figures)
    for text in ("Oct 2016 \u2013 Dec 2026", "Version 2", "Dec 9999", "Feb 0001", "COMPLETE"):
        assert text in page
    assert f"Sep 2026, used: {Decimal('1.234')}" in page  # what a bar shows to a pointer
    bars = re.findall(r'<rect class="(\w+)" .* y="(\S+)" height="(\S+)"', page)
    months = figures.tables["trend"]
    wrong = [each for each in months if each["difference"]]
    assert len(bars) == 2 * len(months) + len(wrong) > 2 * len(months)
    for side, y, height in bars:
        most = 34 if side == "difference" else 70
        assert 0 <= float(y) <= float(y) + float(height) <= most + 0.1
    assert 10_000 < len(page.encode()) < 1_000_000
    assert "<script" not in page.lower()
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert '<bdi title="second">second Ltd</bdi>' in page  # Arabic does not move the amount
    assert r"evil\u202egnp" in page
    assert not re.search(r"""\s(on\w+|src)=|\shref="[^#]""", page)


@pytest.mark.long
def test_without_reconciliation_there_is_a_banner_and_no_verdict(stores: Stores) -> None:
    publish(stores, mapping="", billing=BILLS)
    figures = figures_of(stores, 3)
    assert not figures.tables["currencies"]
    page = render_report(figures)
    assert "Usage is not compared with billing" in page
    assert "<code>partner-sync mapping propose</code>" in page
    text = re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL)
    assert not re.search("balance|agree|open break|difference", text, re.IGNORECASE)
    assert page.count(">COMPLETE<") == 3
    publish(stores, billing=BILLS)
    found = read_figures_of_books(stores).previous
    assert found
    assert found.version == 2  # the newest that has figures


def test_the_page_and_the_list_of_reports_are_written(stores: Stores) -> None:
    file = write_report(stores, read_figures_of_books(stores))
    assert file == stores.home.reports / "v00000002.html"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = text_of(file.read_text("utf-8"))
    assert "Newest usage: 10 Sep 2026 . no usage for 54 days , since 10 Sep 2026: the" in text
    # COMPLETE says that all was read, not that all is there.
    assert "COMPLETE usage, 11 rows, 03 Nov 2026, 02:01 UTC newest record 10 Sep 2026 C" in text
    assert text.index("For the operator") < text.index("partner-sync")  # commands are nowhere else
    assert "finance." not in text.partition("For the operator")[0]
    assert (
        "What changed since 02 Nov 2026, 02:01 UTC (version 1, the last with other data) "
        "Records: billing 1 changed. Open breaks: 9 before, 8 now. "
        "1 no longer found (EUR&nbsp;\u22120.05). Change of the difference: EUR&nbsp;+0.05; "
        "used or billed changed in 1 month of partners ." in text
    )
    assert "+1.10 10.00 4.40 \u22124.50 3 Open breaks by partner: first Ltd :&nbsp;+10.00; " in text
    rollback(stores, 1, "a test")
    first = write_report(stores, read_figures_of_books(stores))
    assert "no earlier version has figures" in first.read_text("utf-8")
    index = (file.parent / "index.html").read_text("utf-8")
    assert re.findall(r'href="(\S+)"', index) == [file.name, first.name]


@pytest.mark.long
def test_the_change_since_the_last_close(stores: Stores) -> None:
    stores.configure()
    close_month(stores, date(2026, 9, 1), "ann", "bob")
    build_with_books(stores)  # as the command does: it holds the same scans
    before = page_text(stores)
    assert (
        "Oct 2026 not signed off No amounts: EUR, KWD, JPY. "
        "Sep 2026 signed off 05 Nov 2026, unchanged since No: 3 open breaks "
        "Usage may be missing: it ends on 10 Sep 2026. "
        "Difference: EUR&nbsp;+4.09, KWD&nbsp;+1.366. In open breaks: EUR&nbsp;+5.59 (2), "
        "KWD&nbsp;+1.366 (1). Credit note without usage: EUR&nbsp;\u22121.50. "
        "Open at sign-off: 3 of usage and billing (3 above materiality); "
        "materiality EUR 0.005, KWD 0.002; "
        "no reason was asked for, as the names were typed and not verified. "
        "6 other months not signed off No: 5 open breaks "
        "Difference: EUR&nbsp;\u22122.99, KWD&nbsp;\u22124.500, JPY&nbsp;\u2212100. "
        "In open breaks: EUR&nbsp;+0.01 (1), KWD&nbsp;\u22124.500 (2), JPY&nbsp;\u2212100 (2). "
        "Not due yet: EUR&nbsp;\u22123.00. Signed off: Sep 2026;" in before
    )
    stores = stores.changed(keep_versions=1)
    publish(stores, billing=EARLIER)
    figures = read_figures_of_books(stores)
    assert figures.closed
    since_close = judge(figures).change_since_close
    assert since_close
    assert {currency: each.amount for currency, each in since_close.items()} == {
        "EUR": Decimal("-0.05")
    }
    after = text_of(render_report(figures))
    assert "signed off 05 Nov 2026, 1 record changed since" in after
    assert (
        "1 of them changed since. Net change of the difference: Sep 2026 EUR&nbsp;\u22120.05. "
        "These changes are in their own months above, and not in Oct 2026, to which the "
        "corrections are posted" in after
    )


@pytest.mark.long
def test_nothing_is_balanced_or_resolved_if_a_list_is_not_proven(stores: Stores) -> None:
    publish(stores, complete=False, billing=BILLS)
    page = render_report(read_figures_of_books(stores))
    assert "no usage record or bill has changed. <strong>" in page
    text = text_of(page)
    assert "Uncertain breaks: EUR&nbsp;+5.59, KWD&nbsp;+1.366. 6 other months" in text
    assert "It has to be read again first ( note&nbsp;1 ) . " in text
    assert not re.search("balanced|no longer found|unchanged since", text, re.IGNORECASE)
    assert "Open breaks: 8 before, 0 now. 8 now uncertain (EUR&nbsp;+10.00 and \u22124.40, " in text
    other = bill("b2", line("a2", "7.20"), month="2026-07-01")  # 7.11 before
    publish(stores, billing=[BILLS[0], other, *BILLS[2:]])
    assert [(kind, len(breaks)) for kind, breaks in moves(stores)] == [("open again", 8)]
    other = bill("b2", line("a2", "7.25"), month="2026-07-01")
    publish(stores, billing=[BILLS[0], other, *BILLS[2:]])
    ((kind, (changed,)),) = moves(stores)
    assert (kind, changed["difference"]) == ("of another amount", Decimal("0.05"))


def moves(stores: Stores) -> list[tuple[str, Sequence[Row]]]:
    """Return what became of breaks since the version before, by kind."""
    changes = judge(read_figures_of_books(stores)).changes
    assert changes
    return [(move.kind, move.breaks) for move in changes.moves]


@pytest.mark.long
def test_new_and_resolved_breaks_are_named(stores: Stores) -> None:
    stores.configure()
    close_month(stores, date(2026, 7, 1), "ann", "bob")
    new = [bill(f"n{each}", line(f"gone{each}", f"{each}.00")) for each in (2, 3, 4)]
    publish(stores, billing=[*BILLS, *new])
    one = ("breaks", "resolve", "--month", "2026-07", "--reason", "cents")
    Cli(stores.home)(*one, "--yes")
    text = page_text(stores)
    assert (
        "Open breaks: 8 before, 10 now. 3 new: first Ltd , Sep 2026, EUR&nbsp;+4.00 "
        "(billed without usage); first Ltd , Sep 2026, EUR&nbsp;+3.00 (billed without usage); "
        "1 more (EUR&nbsp;+2.00). 1 resolved by a person (EUR&nbsp;+0.01)." in text
    )
    assert (
        "Jul 2026 signed off, unchanged since No open break, but not balanced. "
        "Difference: EUR&nbsp;+0.01. "
        "Resolved by a person: EUR&nbsp;+0.01. 5 other months not signed off No: 4 open breaks "
        in text
    )
    assert "What to do first: 4 of 10 (most severe first)" in text
    assert len(re.findall("first Ltd (, Sep 2026 )?new ", text)) == 3


@pytest.mark.long
def test_a_month_is_right_only_if_it_is_over_and_proven(stores: Stores) -> None:
    about: Record = {"day": "2026-10-05", "recorded": "2026-10-06T10:00:00Z"}
    october = bill("o", line("o", "5.00"), month="2026-10-01", issued="2026-10-31T22:00:00Z")
    usage = [*USAGE, used("o", "5.00", **about)]
    publish(stores, usage=usage, billing=[*BILLS, october])
    months = "Oct 2026 not signed off {} Difference: none. No amounts: KWD"
    missing = (
        "Not proven: no open break in what is known Usage may be missing: it ends on 05 Oct 2026."
    )
    assert months.format(missing) in page_text(stores)
    publish(stores, usage=[*usage, used("n", "1.00", day="2026-11-01")])
    page = render_report(read_figures_of_books(stores))
    assert months.format("Yes: balanced") in text_of(page)
    assert page.count('class="badge good">Yes') == 1
    publish(stores, complete=False, billing=[*BILLS, october])
    page = render_report(read_figures_of_books(stores))
    assert (
        "Oct 2026 not signed off Not proven: no open break in what is known Difference: none."
        in text_of(page)
    )


unknown = home_with(
    [used("a"), {**used("b"), "amount": None}, {**used("c", partner=None), "amount": None}],
    [bill("a", line("a")), bill("v", status="void", total=None)],
)
DAYS = {"b": "2026-09-10", "c": "2026-09-10", "d": "2026-08-10"}


@pytest.mark.long
def test_amounts_and_partners_that_are_missing_are_not_known(unknown: Stores) -> None:
    text = page_text(unknown)
    for shown in (
        "In open breaks: EUR&nbsp;not known (2).", "EUR 2: not known not known", "no partner ,",
    ):  # fmt: skip
        assert shown in text
    assert "Void 1: not known" in text
    lacking = [{**used(name, day=day), "amount": None} for name, day in DAYS.items()]
    publish(unknown, usage=[used("a"), *lacking])
    text = page_text(unknown)
    assert "1 new: first Ltd , Aug 2026, EUR&nbsp;not known (no bill for the month)." in text


strange = home_with(
    [used("a"), used("b", partner="second"), used("c", day="2026-08-10")],
    [
        *(bill(each, line(each), partner="nobody") for each in ("a", "b")),
        bill("c", line("c"), partner="nobody", month="2026-08-01"),
    ],
    names=(FIRST, "second"),
)


@pytest.mark.long
def test_several_other_partners_of_one_break_are_counted(strange: Stores) -> None:
    text = page_text(strange)
    assert "The matching usage or bill names first Ltd and 1 more . " in text
    assert "The matching usage or bill names first Ltd . " in text
    assert "(the matching" not in text  # of both breaks


@pytest.mark.long
def test_the_command_prints_the_file_and_the_totals(stores: Stores) -> None:
    stores.configure()
    cli = Cli(stores.home)
    found = cli.json("report")
    assert Path(found["file"]).is_file()
    eur, kwd, _jpy = found["currencies"]
    assert (eur["change"], kwd["change"], kwd["difference"]) == ("0.050", "0.000", "-3.134")
    shown = cli("report").stdout
    assert f"Report of version 2: {found['file']}" in shown
    stores.home.link.unlink()
    assert "Nothing is published yet" in cli("report", code=1).output


@pytest.mark.long
def test_records_in_quarantine_are_named(stores: Stores) -> None:
    publish(stores, billing=[*BILLS, {**BILLS[0], "total": "1.00"}])  # two with one key
    text = page_text(stores)
    assert "06 Nov 2026, 02:01 UTC, 1 in quarantine : amounts may lack them" in text


@pytest.mark.long
def test_connections_without_all_lists_have_a_page(stores: Stores) -> None:
    rows: list[Record] = [{"id": "a", "name": "A"}]
    read(stores, Reading(rows, connection="shop", stream="invoices"))
    read(stores, Reading(rows, connection="other", stream="partners"))
    build_with_books(stores)
    text = page_text(stores)
    assert "Data as of 02 Nov 2026, 02:01 UTC ." in text
    assert "NOT READ other/usage NOT READ other/billing" in text
    assert text.count("NOT READ") == 2  # not of a connection from which other lists are read
    assert "other/billing is not proven complete." in text
