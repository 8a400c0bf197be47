"""The lists of the report for everybody: on a phone, in the dark, read aloud; and large ones.

`PICTURES=folder` keeps pictures of them.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.reports.embed import MOST_BYTES
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.render import render_page
from tests.browser.operator import open_chromium
from tests.browser.test_report import FAULTS, OPEN_TABLES, TOO_WIDE, picture, publish_books
from tests.reports.large import BILLS, CONNECTIONS, PARTNERS, large_details
from tests.versions.homes import Stores, made_home

PICTURES = {
    (1300, "light", "months"): "report-months",
    (1300, "light", "breaks"): "report-breaks",
    (390, "dark", "months"): "report-months-phone",
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
    if name not in ("", "resolved"):  # nothing is resolved
        expect(page.locator("#tables table").first).to_be_visible()


@pytest.fixture(scope="module")
def report(stores: Stores, figures: Figures) -> Path:
    return write_report(stores, figures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 390])
def test_every_view_is_accessible(
    browser: Browser, report: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.goto(report.as_uri())
    expect(page.locator("#views")).to_be_visible()
    page.evaluate(OPEN_TABLES)
    targets = page.locator("#views a").evaluate_all("links => links.map((each) => each.hash)")
    assert len(targets) > 7
    for target in targets:
        name = target.removeprefix("#/").replace("#summary", "")
        show(page, name)
        if name == "breaks":
            page.locator("button.more").first.click()
            expect(page.locator("tr.opened")).to_be_visible()
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"]) for each in found] == []
        assert page.evaluate(TOO_WIDE) == 0
        assert page.evaluate(FAULTS) == []
        if (width, scheme, name) in PICTURES:
            picture(page, PICTURES[width, scheme, name])
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
    page.close()


def seconds_to_open(page: Page, file: Path) -> float:
    """Return how long it takes until a page can be clicked."""
    page.goto("about:blank")
    began = time.monotonic()
    page.goto(f"{file.as_uri()}#/partners")
    expect(page.locator("#tables table").first).to_be_visible()
    return time.monotonic() - began
