"""Dagster's UI in a real browser: what an operator clicks, and what the pages then show.

`make test-browser` runs it (minutes), `make screenshots` keeps the pictures as well. The tests go
on from one another, as an operator's day does. Not here: what starts all of it (opened.py).
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.opened import Dev, browser, dev, picture

STREAMS = ("billing", "partners", "usage")
GROUPS = ("archive", "current", "published")
TODAY = datetime.now(UTC).date()
FIRST = TODAY - timedelta(days=2)
# An asset's tab, and words of ours that it must show.
SHOWN = [
    ("archive/usage?view=events", ("plan", "proof", "dagster/partition_row_count")),
    ("archive/usage?view=checks", ("read_to_its_end", "proven")),
    ("current/usage?view=events", ("tables", "manifest")),
    ("published/warehouse?view=events", ("version", "tables")),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    with dev(tmp_path_factory.mktemp("dev")) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


def lineage(page: Page, made: Dev) -> Locator:
    """Open the whole chain; return what materializes all of it."""
    page.goto(f"{made.url}/asset-groups")
    materialize = page.get_by_role("button", name="Materialize all")
    expect(materialize).to_be_enabled()
    return materialize


def asked(page: Page, made: Dev, days: str) -> Locator:
    """Ask for days of the one connection, for the whole chain; return the dialog."""
    lineage(page, made).click()
    dialog = page.locator(".dagster-portal", has_text="Partition selection")
    expect(dialog.get_by_text("2025-01-01")).to_be_visible()  # by then it knows the partitions
    dialog.get_by_role("button", name="All", exact=True).first.click()  # of connections
    expect(dialog.get_by_text("default", exact=True).first).to_be_visible()
    field = dialog.get_by_placeholder("ex: ")
    field.fill(days)
    field.press("Tab")
    return dialog


def test_the_lineage_shows_the_chain(made: Dev, page: Page) -> None:
    lineage(page, made)
    for group in GROUPS:
        expect(page.get_by_text(group, exact=True).last).to_be_visible()
    assert page.get_by_text("archive", exact=True).count() >= 2  # in the list and in the picture
    picture(page, "lineage")


def test_today_is_materialized(made: Dev, page: Page) -> None:
    asked(page, made, str(TODAY)).get_by_role("button", name="Launch 1 run").click()
    runs = made.settled(1)
    assert [run["status"] for run in runs] == ["SUCCESS"], made.told()
    page.goto(f"{made.url}/runs/{runs[0]['runId']}")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible()
    picture(page, "today")


def test_three_days_are_one_green_run(made: Dev, page: Page) -> None:
    dialog = asked(page, made, f"[{FIRST}...{TODAY}]")
    launch = dialog.get_by_role("button", name="Launch backfill")
    expect(launch).to_be_enabled()
    picture(page, "backfill-asked")
    launch.click()
    runs = made.settled(2)
    assert [run["status"] for run in runs] == ["SUCCESS", "SUCCESS"], made.told()
    backfill = made.backfilled()
    assert (backfill["numPartitions"], backfill["status"]) == (3, "COMPLETED_SUCCESS")
    page.goto(f"{made.url}/runs/b/{backfill['id']}")
    expect(page.get_by_text("3 partitions").first).to_be_visible()
    picture(page, "backfill")


@pytest.mark.parametrize(("tab", "words"), SHOWN)
def test_what_a_run_did_is_on_the_page(
    made: Dev, page: Page, tab: str, words: tuple[str, ...]
) -> None:
    page.goto(f"{made.url}/assets/{tab}")
    for word in words:
        expect(page.get_by_text(word).first).to_be_visible()
    picture(page, tab.replace("/", "-").replace("?view=", "-"))
