"""A home with two reconciled versions of small books in three currencies; a copy for each test."""

import re

import pytest

from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.queries import Figures, read_figures
from pipelines.finance.reports.render import render_report
from pipelines.warehouse.books import BooksFolder
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import Record, Stores, home_of, made_home

SCRIPT, BIDI = "<script>alert(1)</script>", "evil\u202egnp"
NAMES: list[Record] = [
    *partners([FIRST, "second"]),
    {"id": "script", "name": SCRIPT, "externalId": ""},
    {"id": "bidi", "name": BIDI, "externalId": "x-bidi"},
]
HUGE = "123456789012345678901234567.89"  # more digits than a float, or Python's default context
JPY, KWD = {"currency": "JPY"}, {"currency": "KWD"}
USAGE: list[Record] = [
    used("a1", "10.25"),
    used("a2", "7.10", day="2026-07-03", recorded="2026-08-02T10:00:00Z"),
    used("a3", "4.40", partner="script"),
    used("a4", "3.00", day="2026-12-02"),  # whose bill is not due
    used("a5", HUGE, partner="second"),
    used("j1", "700", **JPY, partner="second"),
    used("j2", "50", **JPY, partner="second", day="2016-10-31"),  # the first month of a chart
    used("j3", "50", **JPY, partner="second", day="2016-09-30"),
    used("k1", "1.234", **KWD, partner="bidi"),
    used("k2", "2.000", **KWD, partner="bidi", day="9999-12-01"),
    used("k3", "2.500", **KWD, partner="bidi", day="0001-02-01"),
]
BILLS: list[Record] = [
    bill("b1", line("a1", "10.25")),
    bill("b2", line("a2", "7.11"), month="2026-07-01"),
    bill("b3", line("a5", HUGE), partner="second", total=HUGE),
    bill("n1", line("gone", "9.99")),
    bill("c1", line(None, "1.50"), kind="credit"),
    bill("v1", line("a3", "4.40"), partner="script", status="void"),
    bill("b4", line("j1", "700"), **JPY, partner="second"),
    bill("b5", line("k1", "1.300"), **KWD, partner="bidi"),
    bill("b6", line("k1", "1.300"), **KWD, partner="bidi", issued="2026-10-05T22:00:00Z"),
]
EARLIER: list[Record] = [bill("b1", line("a1", "10.20")), *BILLS[1:]]


def publish_books(stores: Stores) -> None:
    """Publish versions 1 and 2 of the books; in 1, a bill is 0.05 EUR less."""
    publish(stores, partners=NAMES, usage=USAGE, billing=EARLIER)
    publish(stores, billing=BILLS)


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """Those of version 2."""
    made = made_home(tmp_path_factory, publish_books)
    return figures_of(made.copied(tmp_path_factory.mktemp("figures") / "home"))


stores = home_of(publish_books)


def figures_of(stores: Stores, number: int = 2) -> Figures:
    folder = BooksFolder(stores.warehouse)
    with folder.open(folder.newest_of(number), stores.warehouse.version(number)) as db:
        return read_figures(db, number)


def page_text(stores: Stores) -> str:
    """Return the words of the report of the published version."""
    return text_of(render_report(read_figures_of_books(stores)))


def text_of(page: str) -> str:
    """Return the words of a page, each after one space."""
    without_style = re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", without_style).split())
