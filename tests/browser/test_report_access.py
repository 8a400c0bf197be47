"""The lists of the report for everybody: on a phone, in the dark, read aloud; and large ones.

`PICTURES=folder` keeps pictures of them.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.reports.embed import MOST_BYTES
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.render import render_page
from pipelines.finance.statement import write_statements
from tests.browser.operator import open_chromium
from tests.browser.test_report import FAULTS, OPEN_TABLES, TOO_WIDE, picture, publish_books
from tests.reconcile.own import publish_own
from tests.reports.large import BILLS, CONNECTIONS, PARTNERS, large_details
from tests.versions.homes import Stores, made_home

PICTURES = {
    (1300, "light", "months"): "report-months",
    (1300, "light", "breaks"): "report-breaks",
    (390, "dark", "months"): "report-months-phone",
}
# Returns what is cut: it is wider than its box, and nothing scrolls to it that has a name, takes
# the focus, and shows at its edge that there is more.
CUT = """() => {
  const reaches = (box) => box.matches(".scroll[tabindex='0'][aria-label]:not([aria-label=''])")
    && getComputedStyle(box).overflowX === "auto"
    && getComputedStyle(box).backgroundAttachment.includes("local");
  const cut = [];
  for (const box of document.querySelectorAll("main *")) {
    const isWider = box.clientWidth && box.scrollWidth > box.clientWidth + 1;
    const shows = getComputedStyle(box).overflowX === "visible" && box.closest(".scroll");
    const isCut = isWider && !shows && !reaches(box) && !box.matches(".unseen");
    if (isCut) cut.push(box.outerHTML.slice(0, 200));
  }
  return cut;
}"""
WIDER = """() => [...document.querySelectorAll("#tables .scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1).length"""
WIDTHS = (1300, 1000, 768, 390)
# In the dark, the same elements have other colours: what axe looks at, and at which widths.
WIDTHS_OF = {"light": WIDTHS, "dark": (WIDTHS[0], WIDTHS[-1])}
RULES: dict[str, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["cat.color"]},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    made = made_home(tmp_path_factory, publish_books)
    return made.copied(tmp_path_factory.mktemp("page") / "home")


@pytest.fixture(scope="module")
def figures(stores: Stores) -> Figures:
    return read_figures_of_books(stores, with_details=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as chromium:
        yield chromium


def show(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = name && `/${name}`; }", name)
    place = f"#views [href='#/{name}']" if name else "#views [href='#summary']"
    expect(page.locator(f"{place}[aria-current]")).to_be_visible()
    if name:
        rows = page.locator("#tables table").or_(page.get_by_text("No rows.", exact=True))
        expect(rows.first).to_be_visible()


@pytest.fixture(scope="module")
def report(stores: Stores, figures: Figures) -> Path:
    return write_report(stores, figures)


@pytest.fixture(scope="module")
def own_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a home with own books, which has a statement."""
    made = made_home(tmp_path_factory, publish_own).copied(tmp_path_factory.mktemp("own") / "home")
    write_statements(made, date(2026, 9, 1), with_pdf=False)
    return write_report(made, read_figures_of_books(made, with_details=True))


def views(
    browser: Browser, file: Path, scheme: Literal["light", "dark"]
) -> Iterator[tuple[Page, str]]:
    """Yield the page at each of its views, and the name of the view."""
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 844}, color_scheme=scheme)
    page.goto(file.as_uri())
    expect(page.locator("#views")).to_be_visible()
    page.evaluate(OPEN_TABLES)
    for target in page.locator("#views a[href^='#']").all():
        name = str(target.get_attribute("href")).lstrip("#/").replace("summary", "")
        show(page, name)
        if name in ("breaks", "bills", "changes") and page.locator("button.more").count():
            page.locator("button.more").first.click()
            expect(page.locator("tr.opened")).to_be_visible()
        yield page, name
    page.close()


def check(page: Page, width: int, scheme: str) -> None:
    """Assert that what is shown can be read and reached by everybody."""
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate(CUT) == []
    if width == WIDTHS[-1]:  # on a phone, nobody swipes sideways to read a list
        assert page.evaluate(WIDER) == 0
    if width in (WIDTHS[0], WIDTHS[-1]):  # those between have the same elements and colours
        found = Axe().run(page, options=RULES[scheme]).response["violations"]
        assert [(each["id"], each["nodes"]) for each in found] == []
        assert page.evaluate(FAULTS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(
    browser: Browser, report: Path, scheme: Literal["light", "dark"]
) -> None:
    shown = 0
    for page, name in views(browser, report, scheme):
        for width in WIDTHS_OF[scheme]:
            check(page, width, scheme)
            if (width, scheme, name) in PICTURES:
                picture(page, PICTURES[width, scheme, name])
        page.set_viewport_size({"width": WIDTHS[0], "height": 844})
        shown += 1
    assert shown > 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_own_books_and_statements_are_accessible(
    browser: Browser, own_report: Path, scheme: Literal["light", "dark"]
) -> None:
    for page, name in views(browser, own_report, scheme):
        if name == "":
            own = page.get_by_role("region", name="Totals of ledger")
            expect(own).to_contain_text("Sep 2026")
            expect(page.get_by_role("link", name="list of statements")).to_be_visible()
        elif name == "own-breaks":
            expect(page.locator("#tables")).to_contain_text("ledger")
        elif name == "statements":
            expect(page.locator("#tables")).to_contain_text("001")
        elif name == "partners":
            link = page.locator("#tables").get_by_role("link", name="Sep 2026").first
            file = link.get_attribute("href")
            assert (own_report.parent / str(file)).is_file()
        else:
            continue
        for width in (WIDTHS[0], WIDTHS[-1]):
            check(page, width, scheme)
        page.set_viewport_size({"width": WIDTHS[0], "height": 844})


def test_a_statement_is_read_on_a_phone_without_swiping(browser: Browser, own_report: Path) -> None:
    file = min((own_report.parent.parent / "statements").glob("*/*.html"))
    page = browser.new_page(viewport={"width": WIDTHS[-1], "height": 844})
    page.goto(file.as_uri())
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate(WIDER.replace("#tables ", "")) == 0
    assert page.evaluate(FAULTS) == []
    assert Axe().run(page).response["violations"] == []
    label = "e => getComputedStyle(e, '::before').content"
    assert "Used" in page.locator("tbody td").first.evaluate(label)
    page.close()


def test_the_lists_of_many_partners_fit_and_open_at_once(
    browser: Browser, figures: Figures, tmp_path: Path
) -> None:
    """5,000 partners, 12 months, 100,000 bills."""
    many = replace(figures, details=large_details())
    file = tmp_path / "many.html"
    file.write_text(render_page(many), "utf-8")
    assert file.stat().st_size < MOST_BYTES
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    assert min(seconds_to_open(page, file) for _try in range(3)) < 2
    for name, rows in (("partner-months", 12 * PARTNERS), ("bills", BILLS)):
        show(page, name)
        expect(page.get_by_role("status")).to_have_text(f"{rows:,} rows.")
        expect(page.locator("#list-left-out")).to_be_empty()
        page.get_by_role("combobox", name="Connection").select_option(CONNECTIONS[1])
        expect(page.get_by_role("status")).to_have_text(f"{rows // 2:,} of {rows:,} rows.")
    show(page, "changes")
    buttons = page.locator("#tables table").first.locator("button.more")
    opened = page.locator("#tables tr.opened")
    buttons.first.click()
    expect(opened).to_contain_text("Sum of 6 rows")
    page.locator("#tables .dt-paging .last").first.click()
    buttons.last.click()
    expect(opened).to_contain_text("are not in this file. All of them: partner-sync sql")
    page.close()


def seconds_to_open(page: Page, file: Path) -> float:
    """Return how long it takes until a page can be clicked."""
    page.goto("about:blank")
    began = time.monotonic()
    page.goto(f"{file.as_uri()}#/partners")
    expect(page.locator("#tables table").first).to_be_visible()
    return time.monotonic() - began
