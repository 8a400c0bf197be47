"""The page of the reports in a real browser: sorted, opened, dark, printed, without a network.

`make test-browser` runs it with the demo's page, `make screenshots` keeps the pictures. Not here:
what is on the page (tests/reports).
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pipelines import run
from pipelines.settings import Home
from tests.browser.opened import browser, picture
from tests.reports.conftest import CLOSES, META, RECONCILIATION, made

# A report, a column of numbers in it.
SORTED = [
    ("revenue_at_risk", "amount"),
    ("partner_statement", "used"),
    ("billing_by_partner", "variance"),
    ("reconciliation_pack", "difference"),
]
INK = "element => getComputedStyle(element).color"
CLOSED = "document.querySelectorAll('details:not([open])').length"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page that the demo writes."""
    home = tmp_path_factory.mktemp("report") / "demo"
    program = Path(sys.executable).with_name("partner-sync")
    subprocess.run([program, "demo", "--home", home], check=True, capture_output=True)
    return home / "reports" / "report-v00000001.html"


@pytest.fixture(scope="module")
def opened() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.fixture
def page(opened: Page, file: Path) -> Page:
    """Open the page anew, in the light."""
    opened.set_viewport_size({"width": 1280, "height": 900})
    opened.emulate_media(color_scheme="light", media="screen")
    opened.goto(file.as_uri())
    return opened


def column(page: Page, report: str, name: str) -> list[str]:
    """Return what stands below a heading of a report's table."""
    table = page.locator(f"#{report} table")
    names = table.locator("th button").all_inner_texts()
    place = [each.rstrip(" ▲▼") for each in names].index(name) + 1
    return [text.strip() for text in table.locator(f"td:nth-child({place})").all_inner_texts()]


def test_it_opens_alone_and_complains_of_nothing(opened: Page, file: Path) -> None:
    asked: list[str] = []
    said: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(file.as_uri())
    expect(opened.get_by_text("Data as of")).to_be_visible()
    expect(opened.get_by_text("Every rule was evaluated.")).to_be_visible()
    assert (asked, said) == ([file.as_uri()], [])
    picture(opened, "report")


@pytest.mark.parametrize(("report", "name"), SORTED)
def test_a_click_sorts_by_every_digit_and_another_turns_it(
    page: Page, report: str, name: str
) -> None:
    before = column(page, report, name)
    head = page.locator(f"#{report} th button", has_text=re.compile(f"^{name}$"))
    for turned in (False, True):
        head.click()
        after = column(page, report, name)
        numbers = [Decimal(each.replace(",", "")) for each in after if each]
        assert len(numbers) > 3
        assert numbers == sorted(numbers, reverse=turned)
        assert after[len(numbers) :] == [""] * (len(after) - len(numbers))  # the empty ones last
        assert sorted(after) == sorted(before)
    ordered = page.locator(f"#{report} th[aria-sort=descending]")
    expect(ordered).to_have_text(name)


def test_a_break_of_the_pack_leads_to_its_records(page: Page) -> None:
    found = page.locator("#reconciliation_pack tr", has_text="O'Brien")
    link = found.locator("a[href^='#B']").first
    name = link.inner_text()
    link.click()
    found = page.locator(f"details#{name}")
    expect(found.locator("table")).to_be_visible()
    expect(found.get_by_text(f"partner-sync explain {name}")).to_be_visible()
    assert found.locator("tbody tr").count() >= 1
    page.set_viewport_size({"width": 1280, "height": 640})
    picture(page, "report-break")


def test_it_is_dark_where_the_reader_s_system_is(page: Page) -> None:
    label = page.locator("#revenue_at_risk svg text").first
    light = label.evaluate(INK)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert label.evaluate(INK) != light
    fill = label.evaluate("element => getComputedStyle(element).fill")
    assert fill == page.locator("body").evaluate(INK)  # the picture has the page's own colour
    page.locator("#revenue_at_risk").evaluate("section => section.scrollIntoView()")
    picture(page, "report-dark")


def test_on_paper_every_break_is_open_and_nothing_is_cut_off(page: Page) -> None:
    assert page.evaluate(CLOSED) > 20
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(CLOSED) == 0
    page.emulate_media(media="print")
    expect(page.locator("nav")).to_be_hidden()
    for box in page.locator(".wide").all():
        assert box.evaluate("element => getComputedStyle(element).overflowY") == "visible"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(CLOSED) > 20
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_hostile_name_is_a_name(opened: Page, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    published = home.published / "warehouse.v00000042.duckdb"
    made(published, META, RECONCILIATION, CLOSES).close()
    home.link.symlink_to(published)
    opened.goto(run.report(home).file.as_uri())
    expect(opened.get_by_text("</script><script>window.hit=1</script>").first).to_be_visible()
    assert opened.evaluate("window.hit") is None
    assert opened.locator("script").count() == 1
