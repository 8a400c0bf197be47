"""The lists of the report in a real browser: sorted exactly, filtered, opened, without a mouse."""

import random
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.reports.text import format_amount
from tests.browser.operator import open_chromium
from tests.browser.test_report import publish_books
from tests.reconcile.books import MAPPING, bill, decide, line, partners, publish, used
from tests.reconcile.flux_books import AUGUST, OF_PLANS, SEPTEMBER, Row, publish_then_and_now
from tests.reconcile.own import HEAD, LEDGER, write
from tests.reports.conftest import HUGE
from tests.reports.test_bills import publish_bills
from tests.versions.homes import Make, Record, Stores, made_home

UNSTATED = "not known."
HOSTILE = "<img src=x onerror=\"document.title='acted'\"> & <b>bold</b>"
MONTHS = (AUGUST, SEPTEMBER)
LARGE = int(HUGE.partition(".")[0])


def publish_hostile(stores: Stores) -> None:
    """Amounts that no float tells apart, of partners whose names are HTML."""
    names: list[Record] = [*partners(["first"]), {"id": "h", "name": HOSTILE, "externalId": "x"}]
    usage = [used(f"u{each}", f"{LARGE + each}.0{each}", partner="h") for each in range(5)]
    usage.append(used("small", "9.10", quantity=3))
    bills = [bill("b", line("small", "10.00", 3), id=HOSTILE)]
    publish(stores, partners=names, usage=usage, billing=bills)


def publish_plans(stores: Stores) -> None:
    """A month with other prices of many plans; of one partner, another quantity."""
    publish_then_and_now(stores, OF_PLANS, OF_PLANS)


def publish_doubled(stores: Stores) -> None:
    """The bills of a month have twice the price on one of two lines of a plan."""
    rows = (
        *(Row(f"{month}-{each}", "5.00", month=month) for month in MONTHS for each in range(2)),
        Row("twice", "10.00", month=MONTHS[1]),
    )
    publish_then_and_now(stores, rows, rows)


def publish_in_question(stores: Stores) -> None:
    """One bill that is not paid bills too much, another one does not, and a third is paid."""
    counted = 'counted_statuses = ["paid"]'
    mapping = MAPPING.replace(counted, f'{counted[:-1]}, "open"]\npaid_statuses = ["paid"]')
    usage = [used(name) for name in "abc"]
    bills = [
        bill("much", line("a", "6.00"), status="open"),
        bill("right", line("b"), status="open"),
        bill("paid", line("c")),
    ]
    publish(stores, mapping=mapping, partners=partners(["first"]), usage=usage, billing=bills)


def publish_resolved(stores: Stores) -> None:
    """A bill of two breaks: one is with own books, the other one a person resolved.

    Two bills have more than their lines, and of one that is gone.
    """
    stores.configure()
    write(stores, "ledger/2026-09.csv", [HEAD, "b,first,2026-09-30,5.00,EUR"])
    names = partners(["first"])
    bills = [
        bill("b", line("u")),
        bill("lacking", line("v", "6.00"), line("w", "5.01")),
        bill("above", line("x"), total="7.00"),
        bill("other", line("y"), total="8.00"),
    ]
    lists: dict[str, Any] = {
        "partners": names,
        "usage": [used(name) for name in "uvwxy"],
        "billing": bills,
    }
    publish(stores, mapping=MAPPING + LEDGER, **lists)
    ((number,),) = stores.rows("SELECT break_id FROM finance.open_breaks WHERE difference = 1")
    decide(stores, "break_resolve", number)
    bills[2] = bill("above", line("x"))
    tolerance = "[tolerance]\nline_minor = 1\n"
    publish(stores, mapping=MAPPING + LEDGER + tolerance, **lists)


def written(make: Make, factory: pytest.TempPathFactory) -> Path:
    copy = made_home(factory, make).copied(factory.mktemp("page") / "home")
    return write_report(copy, read_figures_of_books(copy, with_details=True))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(publish_books, tmp_path_factory)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(publish_hostile, tmp_path_factory)


@pytest.fixture(scope="module")
def of_plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(publish_plans, tmp_path_factory)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    yield from opened(browser, report)


@pytest.fixture
def hostile_page(browser: Browser, hostile: Path) -> Iterator[Page]:
    yield from opened(browser, hostile)


@pytest.fixture
def plans_page(browser: Browser, of_plans: Path) -> Iterator[Page]:
    yield from opened(browser, of_plans)


def opened(browser: Browser, file: Path) -> Iterator[Page]:
    """Yield a page whose console stays empty."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(file.as_uri())
    expect(page.get_by_role("navigation")).to_be_visible()
    yield page
    assert messages == []
    page.close()


def view(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name)


def sorting(table: Locator, name: str) -> Locator:
    """Return what sorts a table by a column."""
    return table.get_by_role("button", name=re.compile(f"^{name}:"))


def column(table: Locator, name: str) -> list[str]:
    """Return the texts of a column of a table."""
    heads = table.locator("thead th").all_inner_texts()
    place = heads.index(name) + 1
    return table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()


def test_a_price_that_changed_leads_to_its_bills(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One click from the summary: the lines add up to the amount, and each names its bill."""
    for page in opened(browser, written(publish_doubled, tmp_path_factory)):
        page.get_by_role("region", name="Average prices that changed").get_by_role("link").click()
        expect(page.get_by_role("heading", name="Prices that changed", exact=True)).to_be_visible()
        lines = page.locator(".opened table")
        expect(lines.locator("tbody tr")).to_have_count(3)
        assert column(lines, "Amount") == ["5.00", "5.00", "10.00"]
        expect(lines.locator("tfoot")).to_contain_text("20.00")
        lines.get_by_role("link", name="btwice").click()
        expect(page.get_by_role("heading", name="Bills", exact=True)).to_be_visible()


def test_september_is_asked_about_in_three_clicks(page: Page) -> None:
    """Is it right; with whom; which break: which records."""
    expect(page.get_by_role("heading", name="Is each month right?")).to_be_visible()
    view(page, "Months")
    assert page.locator("#tables h3").all_inner_texts() == ["EUR", "GBP", "USD", "JPY", "KWD"]
    months = table(page, "Months, EUR")
    assert column(months, "Month")[:3] == ["Nov 2026", "Oct 2026", "Sep 2026"]
    assert column(months, "Is it right?")[1:3] == ["Yes: balanced", "No: open breaks"]
    expect(page.locator("#summary")).to_be_hidden()
    months.get_by_role("link", name="3", exact=True).click()  # the open breaks of September
    expect(page.get_by_role("status")).to_have_text("3 of 7 rows.")
    breaks = table(page, "Open breaks, EUR")
    assert column(breaks, "Difference") == ["+12,650.00", "+210.00", "\u221299.90"]
    expect(breaks.locator("tfoot")).to_contain_text("+12,760.10")
    breaks.locator("tbody").get_by_role("button").first.click()
    expect(breaks.locator("tr.opened")).to_contain_text("twice#0")
    expect(breaks.locator("tr.opened")).to_contain_text("12,650.00")
    expect(breaks.locator("tr.opened")).to_contain_text("To do: ")
    page.go_back()
    expect(page.get_by_role("heading", name="Months", exact=True)).to_be_visible()


def test_the_summary_leads_to_its_breaks(page: Page) -> None:
    number = page.locator(".breaks [data-find] a").first
    name = number.inner_text()
    number.click()
    expect(page.get_by_role("status")).to_have_text("1 of 7 rows.")
    expect(page.get_by_role("button", name=name)).to_have_attribute("aria-expanded", "true")
    expect(page.locator("tr.opened")).to_be_visible()
    page.emulate_media(media="print")  # the summary, whatever is open
    expect(page.locator("#summary")).to_be_visible()
    expect(page.locator("#lists")).to_be_hidden()


def test_filters_select_rows_and_stay_in_the_address(page: Page) -> None:
    view(page, "Partners by month")
    page.get_by_role("combobox", name="Currency").select_option("JPY")
    page.get_by_role("combobox", name="Month").select_option("2026-09")
    expect(page.get_by_role("status")).to_have_text("3 of 110 rows.")
    page.get_by_role("combobox", name="Find").fill("handel")  # a part of the name
    expect(page.get_by_role("status")).not_to_have_text("3 of 110 rows.")
    expect(page.locator("#tables tbody tr")).to_have_count(0)
    page.get_by_role("combobox", name="Find").fill("p03")
    page.get_by_role("combobox", name="Find").press("Enter")
    expect(page.locator("#tables tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("#tables tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_role("status")).to_have_text("110 rows.")
    view(page, "Bills")
    page.get_by_role("combobox", name="Find").fill("B-03-2026-10")
    page.get_by_role("combobox", name="Find").press("Enter")
    expect(page.get_by_role("status")).to_have_text("1 of 108 rows.")


def test_a_list_has_a_filter_of_its_own(page: Page) -> None:
    view(page, "Months")
    page.get_by_role("combobox", name="Is it right?").select_option("No: open breaks")
    expect(page.get_by_role("status")).to_contain_text(" of ")
    assert {*column(table(page, "Months, EUR"), "Is it right?")} == {"No: open breaks"}
    view(page, "Open breaks")
    severity = page.get_by_role("combobox", name="Severity")
    assert severity.locator("option").all_inner_texts()[:2] == ["all", "high"]
    expect(page.get_by_role("status")).to_have_text("7 rows.")
    severity.select_option("high")
    expect(page.get_by_role("status")).to_contain_text(" of 7 rows.")
    page.reload()
    expect(severity).to_have_value("high")
    page.go_back()
    expect(page.get_by_role("status")).to_have_text("7 rows.")
    page.evaluate("() => { location.hash = '/breaks?severity=none'; }")
    expect(page.get_by_role("status")).to_have_text("0 of 7 rows.")
    expect(severity).to_have_value("none")  # the page shows why there is no row
    view(page, "Partners")
    expect(page.get_by_label("Severity")).to_be_hidden()


def test_amounts_in_question_lead_to_their_bills(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for page in opened(browser, written(publish_in_question, tmp_path_factory)):
        amounts = page.get_by_role("region", name="Amounts in question, and credit notes")
        amounts.get_by_role("link", name="1: 6.00").click()
        expect(page.get_by_role("status")).to_have_text("1 of 3 rows.")
        bills = table(page, "Bills, EUR")
        assert column(bills, "Bill")[0] == "much"
        chosen = page.get_by_role("combobox", name="In question")
        expect(chosen).to_have_value("in question")
        chosen.select_option("not in question")
        page.get_by_role("combobox", name="When due").select_option("no due date")
        expect(page.get_by_role("status")).to_have_text("1 of 3 rows.")
        assert column(bills, "Bill")[0] == "right"
        page.get_by_role("button", name="Clear filters").click()
        expect(page.get_by_role("status")).to_have_text("3 rows.")


def test_it_finds_while_typing_without_accents_and_keeps_the_keyboard(page: Page) -> None:
    view(page, "Partners")
    find = page.get_by_role("combobox", name="Find")
    for typed, found in (
        ("lodz", "5 of 19 rows."),  # Łódź Handel
        ("CREDIT elan", "5 of 19 rows."),
        ("zu\u0308rich", "4 of 19 rows."),  # in two characters, as some keyboards write it
        ("nobody", "0 of 19 rows."),
    ):
        find.clear()
        find.press_sequentially(typed, delay=20)
        expect(page.get_by_role("status")).to_have_text(found)
        expect(find).to_be_focused()
        expect(find).to_have_value(typed)
    page.go_back()  # all that was typed, at once
    expect(page.get_by_role("status")).to_have_text("19 rows.")


def test_a_bill_shows_its_lines_which_add_up_to_it(page: Page) -> None:
    view(page, "Bills")
    bills = table(page, "Bills, EUR")
    twice = bills.get_by_role("button", name="twice")
    twice.click()
    expect(bills.locator("tr.opened")).to_contain_text("u-00-2026-09")
    expect(bills.locator("tr.opened tfoot")).to_contain_text("12,650.00")
    twice.press("Enter")
    expect(bills.locator("tr.opened")).to_have_count(0)


def test_a_break_leads_to_its_bill(page: Page) -> None:
    view(page, "Open breaks")
    breaks = table(page, "Open breaks, EUR")
    page.get_by_role("combobox", name="Month").select_option("2026-09")
    breaks.locator("tbody").get_by_role("button").first.click()
    breaks.locator("tr.opened").get_by_role("link", name="twice").click()
    expect(page.get_by_role("heading", name="Bills", exact=True)).to_be_focused()
    expect(page.locator("tr.opened")).to_contain_text("12,650.00")


def test_a_bill_says_when_it_is_due_and_paid_and_what_else_bills_its_usage(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for page in opened(browser, written(publish_bills, tmp_path_factory)):
        view(page, "Bills")
        find = page.get_by_role("combobox", name="Find")
        shown = page.locator("tr.opened")
        for name, said in {
            "paid": "To be paid by: 31 Oct 2026. Paid on: 20 Oct 2026.",
            "unstated": f"To be paid by: {UNSTATED} Paid on: {UNSTATED}",
            "dear": "To be paid by: 31 Oct 2026. Not paid in full.",
            "note": "A credit note, not used up.",
            "void": "Status: void. It counts in no sum.",
        }.items():
            find.fill(name)
            expect(shown).to_contain_text(said)
        expect(shown).to_contain_text("Names the same usage as: bill unstated (1 record).")
        find.fill("paid")
        lines = shown.locator("tbody tr")
        expect(lines).to_have_count(2)
        cells = "#1 3 7.50 b 10 Sep 2026 2 7.00"
        expect(lines.last).to_have_text(re.compile(cells.replace(" ", r"\s*")))
        expect(shown.locator("tfoot")).to_contain_text("12.50")
        expect(shown).to_contain_text("Bills the same usage as: credit note note (1 record).")
        shown.get_by_role("link", name="note").click()
        expect(shown).to_contain_text("Credits the same usage as: bill paid (1 record).")
        find.fill("credit note")
        expect(page.get_by_role("status")).to_have_text("1 of 12 rows.")
        page.get_by_role("button", name="Clear filters").click()
        page.get_by_role("combobox", name="Kind").select_option("void")
        expect(page.get_by_role("status")).to_have_text("1 of 12 rows.")
        view(page, "Due by partner")
        due = table(page, "Due by partner, EUR")
        due.get_by_role("link", name="2.00").last.click()  # 8 to 30 days
        expect(page.get_by_role("status")).to_have_text("2 of 12 rows.")
        expect(page.get_by_role("combobox", name="When due")).to_have_value("8 to 30 days")


def test_a_bill_names_its_resolved_breaks_and_those_with_own_books(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for page in opened(browser, written(publish_resolved, tmp_path_factory)):
        view(page, "Bills")
        shown = page.locator("tr.opened")
        for name, resolved in (("above", 1), ("other", 0)):
            page.get_by_role("button", name=name).click()
            expect(shown.get_by_text("Open breaks with own books: ")).to_be_visible()
            expect(shown.get_by_text("Resolved breaks: ").locator("a")).to_have_count(resolved)
            page.get_by_role("button", name=name).click()
        page.get_by_role("button", name="lacking").click()
        expect(shown.get_by_text("Open breaks: ")).to_have_count(0)
        expect(shown.get_by_text("Resolved breaks: ").locator("a")).to_have_count(2)
        shown.get_by_text("Open breaks with own books: ").get_by_role("link").click()
        expect(page.get_by_role("heading", name="Breaks with own books")).to_be_visible()
        expect(page.locator("tr.opened")).to_contain_text("lacking")


def test_a_bill_names_its_open_breaks_and_the_lines_in_them(page: Page) -> None:
    view(page, "Bills")
    bills = table(page, "Bills, EUR")
    bills.get_by_role("button", name="twice").click()
    opened = bills.locator("tr.opened")
    expect(opened.get_by_text("Open breaks: ")).to_be_visible()
    number = opened.locator("tbody a").first
    name = number.inner_text()
    assert re.fullmatch("B[0-9a-f]{12}", name)
    number.click()
    expect(page.get_by_role("button", name=name)).to_have_attribute("aria-expanded", "true")


def test_a_change_shows_which_plan_is_dearer(plans_page: Page) -> None:
    """Two clicks: the list, and the change of all partners or of one."""
    page = plans_page
    view(page, "Why amounts changed")
    changes = table(page, "Why amounts changed, EUR")
    assert column(changes, "Partner")[:3] == ["all partners", "all partners", "first Ltd"]
    dearer = changes.get_by_role("row", name="first Ltd Sep 2026 used").get_by_role("button")
    dearer.press("Enter")
    items = changes.locator("tr.opened table")
    expect(items).to_be_visible()
    first = items.locator("tbody tr").first
    assert first.locator("td").all_inner_texts() == [
        "plan 24", "cpu", "eu", "h", "+24.00", "+24.00", "10", "10", "1.00", "3.40", "10.00",
        "34.00",
    ]  # fmt: skip
    assert items.locator("tbody tr").last.locator("td").all_inner_texts()[:3] == [
        "5 others",
        "",
        "",
    ]
    expect(items.locator("tfoot")).to_contain_text("+300.00")
    expect(changes.locator("tr.opened")).to_contain_text("All of them: partner-sync sql")
    dearer.press("Enter")
    expect(changes.locator("tr.opened")).to_have_count(0)


def test_the_sum_of_all_partners_leads_to_all_of_them(plans_page: Page) -> None:
    page = plans_page
    view(page, "Why amounts changed")
    table(page, "Why amounts changed, EUR").get_by_role("link", name="all partners").first.click()
    expect(page.get_by_role("heading", name="Partners by month", exact=True)).to_be_visible()
    months = table(page, "Partners by month, EUR")
    assert {*column(months, "Partner")} == {"begin Ltd", "first Ltd", "second Ltd"}


def test_the_summary_leads_to_the_plans_of_a_change(plans_page: Page) -> None:
    page = plans_page
    page.locator("#flux tbody").first.get_by_role("link", name="+302.00").click()
    expect(page.get_by_role("heading", name="Why amounts changed", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Month")).to_have_value("2026-09")
    expect(page.get_by_role("status")).to_contain_text("1 of ")  # that sum of all partners
    expect(page.locator("tr.opened")).to_contain_text("plan 24")


def test_a_change_says_where_no_plan_is_mapped(page: Page) -> None:
    view(page, "Why amounts changed")
    page.locator("#tables tbody button.more").first.click()
    expect(page.locator("tr.opened")).to_contain_text("No plan or metric is mapped")
    heads = page.locator("tr.opened th").all_inner_texts()
    assert "Quantity before" in heads
    assert not {"Plan", "Metric", "Region", "Unit"} & {*heads}


def test_a_price_of_one_unit_is_exact_or_rounded(page: Page) -> None:
    for amount, quantity, digits, expected in (
        ("10.00", "10", 2, "1"), ("1", "3", 2, "0.333333"), ("2", "3", 2, "0.666667"),
        ("-2", "3", 2, "\u22120.666667"), ("12345678.90", "1", 2, "12,345,678.9"),
        ("3703703.67", "3", 2, "1,234,567.89"), ("10000", "7", 0, "1,428.57"),
        ("10000001", "8", 0, "1,250,000"), ("0.0005", "1200", 2, "0.000000416667"),
        (f"{LARGE}.00", "1", 2, f"{LARGE:,}"),
    ):  # fmt: skip
        script = "([values]) => Amounts.format(Amounts.priceOf(...values), 0)"
        assert page.evaluate(script, [[amount, quantity, digits]]) == expected
    unknown = [["1", "0", 2], ["1", None, 2], [None, "1", 2]]
    script = "(each) => each.map((values) => Amounts.priceOf(...values))"
    assert page.evaluate(script, unknown) == [None] * 3


def test_the_page_works_without_a_mouse(page: Page) -> None:
    for _each in range(3):  # summary, months, partners
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    partners = table(page, "Partners, EUR")
    expect(partners).to_be_visible()
    head = sorting(partners, "Difference")
    head.focus()
    page.keyboard.press("Enter")
    expect(partners.locator("th[aria-sort=ascending]")).to_have_text("Difference")
    assert column(partners, "Difference")[0] == "\u221222,049.96"
    page.keyboard.press("Enter")
    assert column(partners, "Difference")[0] == "+12,600.00"
    partners.get_by_role("link", name="Sons 6").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Partners by month")).to_be_focused()


def test_amounts_are_sorted_and_added_exactly(hostile_page: Page) -> None:
    page = hostile_page
    view(page, "Open breaks")
    breaks = table(page, "Open breaks, EUR")
    used_head = sorting(breaks, "Used")
    used_head.click()
    used_head.click()
    amounts = [Decimal(text.replace(",", "")) for text in column(breaks, "Used") if text]
    assert all(one >= other for one, other in pairwise(amounts))
    assert sum(amounts) == 5 * LARGE + 10 + Decimal("0.10") + Decimal("9.10")
    expect(breaks.locator("tfoot")).to_contain_text(f"{sum(amounts):,.2f}")


def test_names_never_become_html(hostile_page: Page) -> None:
    page = hostile_page
    for name in ("Partners", "Open breaks", "Partners by month", "Bills"):
        view(page, name)
        expect(page.locator("#tables").get_by_text(HOSTILE).first).to_be_visible()
        for button in page.locator("button.more").all():
            button.click()
    assert page.title().startswith("Usage and billing")
    assert page.locator("#tables :is(img, b)").count() == 0
    # Where text is written as HTML nevertheless, the browser takes it as text.
    page.evaluate("text => { document.getElementById('tables').innerHTML = text; }", HOSTILE)
    assert page.locator("#tables").inner_text() == HOSTILE


def test_amounts_are_written_as_on_the_printed_page(page: Page) -> None:
    chance = random.Random(59)
    texts = []
    for _each in range(2000):
        whole = chance.randrange(10 ** chance.randrange(1, 30))
        fraction = f"{chance.randrange(10**6):06}"[: chance.randrange(7)]
        sign = chance.choice(("", "-"))
        texts.append(f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}")
    for currency, digits in (("EUR", 2), ("JPY", 0), ("KWD", 3)):
        script = "([texts, digits]) => texts.map((text) => Amounts.format(text, digits, true))"
        shown = page.evaluate(script, [texts, digits])
        assert shown == [format_amount(Decimal(text), currency, signed=True) for text in texts]


def test_a_cell_without_a_value_says_what_that_means(page: Page) -> None:
    script = "([column, row]) => Cells.node(column, row, 2).textContent"
    owner = {"name": "owner", "kind": "text", "empty": "nobody", "link": ""}
    for row, shown in (({"owner": None}, "nobody"), ({"owner": "ann"}, "ann")):
        assert page.evaluate(script, [owner, row]) == shown
    amount = {"name": "used", "kind": "amount", "empty": "", "link": ""}
    assert page.evaluate(script, [amount, {"used": None}]) == ""


@pytest.mark.parametrize("without", ["script", "DecompressionStream"])
def test_without_script_it_is_the_printed_page(
    browser: Browser, report: Path, without: str
) -> None:
    context = browser.new_context(java_script_enabled=without != "script")
    page = context.new_page()
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(report.as_uri())
    expect(page.get_by_role("heading", name="Is each month right?")).to_be_visible()
    expect(page.locator("#views")).to_be_hidden()
    expect(page.locator("#lists")).to_be_hidden()
    context.close()
