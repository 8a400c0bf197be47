"""The finance report in a real browser: wide, on a phone, printed; in light and dark.

`PICTURES=folder` keeps pictures of it.
"""

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from pipelines.finance.report import read_figures_of_books, write_report
from tests.browser.operator import open_chromium
from tests.reconcile.books import bill, line, publish, used
from tests.versions.homes import OpenHome, Record, Stores

PICTURES = {(1300, "light"): "report", (390, "dark"): "report-phone"}
A4: ViewportSize = {"width": 702, "height": 1039}  # px, without margins
NAMES = ("Łódź Handel Sp. z o.o.", "Crédit Élan SARL", "O'Brien & Sons", "Zürich Zahlungen GmbH")
CURRENCIES = ("EUR", "USD", "EUR", "JPY", "GBP", "KWD")
UNBILLED = {(1, "2026-07"), (4, "2026-09"), (6, "2026-08"), (10, "2026-06")}
MONTHS = ("2026-05", "2026-06", "2026-07", "2026-08", "2026-09", "2026-10")
# Returns the texts that are below 12 px, and those with less contrast than WCAG AA asks for.
FAULTS = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const back = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faults = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.tagName === "title" || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const scale = element.getScreenCTM ? element.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    const ink = light(parse(element.ownerSVGElement ? style.fill : style.color));
    const paper = light(back(element));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (size < 12 || contrast < 4.5) faults.push([element.textContent, size, contrast]);
  }
  return faults;
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
OPEN_TABLES = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def books() -> tuple[list[Record], list[Record], list[Record]]:
    """Return partners, usage and bills of six months, with errors of several kinds."""
    partners: list[Record] = [
        {"id": f"p{number:02}", "name": f"{NAMES[number % 4]} {number}", "externalId": "x"}
        for number in range(18)
    ]
    usage, bills = list[Record](), list[Record]()
    for number, month in product(range(18), MONTHS):
        currency, key = CURRENCIES[number % 6], f"{number:02}-{month}"
        whole = f"{10000 + 1370 * number + 530 * (number + int(month[-2:])) % 4000}"
        amount = whole if currency == "JPY" else f"{whole}.{number:02}"
        about = {"partner": f"p{number:02}", "currency": currency}
        day = f"{month}-10"
        usage.append(used(f"u-{key}", amount, day=day, recorded=f"{day}T12:00:00Z", **about))
        if (number, month) not in UNBILLED:
            dates = {"month": f"{month}-01", "issued": f"{month}-28T22:00:00Z"}
            bills.append(bill(f"b-{key}", line(f"u-{key}", amount), **dates, **about))
    first: Record = {"partner": "p00", "month": "2026-09-01"}
    twice = line("u-00-2026-09", "12650.00")
    bills += [
        bill("twice", twice, issued="2026-10-03T10:00:00Z", **first),
        bill("void", twice, status="void", **first),
        bill("credit", line(None, "50.00"), kind="credit", **first),
        bill("unknown", line(None, "210.00"), partner="p99"),
    ]
    usage.append(used("u-late", "99.90", partner="p06", recorded="2026-10-06T10:00:00Z"))
    usage.append(used("u-next", "310.00", partner="p06", day="2026-11-02"))
    return partners, usage, bills


def publish_books(stores: Stores) -> None:
    partners, usage, bills = books()
    publish(stores, partners=partners, usage=usage, billing=bills[:-4])
    publish(stores, billing=bills)


@pytest.fixture
def report(open_home: OpenHome) -> Path:
    """The report of version 2, which has the last four bills more than version 1."""
    stores = open_home(publish_books)
    return write_report(stores, read_figures_of_books(stores, with_details=True))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as chromium:
        yield chromium


def picture(page: Page, name: str, **options: Any) -> None:
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", **options)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1300, 900), (390, 844)])
def test_the_page_can_be_read(
    browser: Browser, report: Path, scheme: Literal["light", "dark"], width: int, height: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(report.as_uri())
    assert page.evaluate(TOO_WIDE) == 0
    if (width, scheme) in PICTURES:
        picture(page, PICTURES[width, scheme])
    if width > 640:  # the first screen answers: how much, which month, what changed, what first
        expect(page.locator(".breaks li").last).to_be_in_viewport(ratio=1)
    page.evaluate(OPEN_TABLES)
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate(FAULTS) == []
    assert page.locator("svg.chart rect:not(.difference)").count() == 2 * 4 * len(MONTHS) + 2
    assert messages == []
    page.close()


def test_it_is_printed_on_two_pages(browser: Browser, report: Path) -> None:
    page = browser.new_page(viewport=A4, color_scheme="dark")
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate(FAULTS) == []
    picture(page, "report-print")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
    page.close()
