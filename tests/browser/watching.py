"""Dagster's UI in a real browser: what an operator clicks, and what the pages then show.

`make test-browser` runs it (minutes), `make screenshots` keeps the pictures as well. The tests go
on from one another, as an operator's day does. Not here: what starts all of it (opened.py).
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.opened import Dev, browser, dev, picture

GROUPS = ("archive", "current", "history", "published", "reports")
LISTED = 3  # groups with an asset for each list
TODAY = datetime.now(UTC).date()
FIRST = TODAY - timedelta(days=2)
ASSETS = 16  # three lists in three groups, the published file and six reports
# A picture, the page of it, and words of ours that it must show.
SHOWN = [
    ("read", "archive/usage?view=events", ("plan of the day", "proof", "COMPLETE", "rows")),
    ("proven", "archive/usage?view=checks&checkDetail=proven", ("read_to_its_end", "COMPLETE.")),
    ("folded", "current/usage?view=events", ("usage__events", "rows read", "manifest")),
    (
        "nothing-lost",
        "current/usage?view=checks&checkDetail=nothing_lost",
        ("The loss check", "rows set aside in quarantine", "Passed"),
    ),
    ("columns", "current/usage", ("DECIMAL(38,3)", "$.usageId of the record")),
    ("published", "published/warehouse?view=events", ("current.billing__lines", "unit_price")),
]
PLOTTED = [
    ("plots", "archive/usage", ("rows", "minutes", "requests planned")),
    ("plots-published", "published/warehouse", ("rows", "minutes", "requests", "rows usage")),
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
    page.keyboard.press("Alt+e")  # all groups open
    expect(page.get_by_text("warehouse", exact=True)).to_be_visible()
    for group in GROUPS:
        expect(page.get_by_text(group, exact=True).last).to_be_visible()
    expect(page.get_by_text("usage", exact=True)).to_have_count(LISTED)
    picture(page, "lineage")


def test_today_is_materialized(made: Dev, page: Page) -> None:
    asked(page, made, str(TODAY)).get_by_role("button", name="Launch 1 run").click()
    runs = made.settled(1)
    assert [run["status"] for run in runs] == ["SUCCESS"], made.told()
    logged(page, made, f"{runs[0]['runId']}?levels=info")
    for words in ("fetch", "usage: COMPLETE"):
        expect(page.get_by_text(f"default|{TODAY}: {words}").first).to_be_visible()
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
    expect(page.get_by_text("100% completed")).to_have_count(ASSETS)
    picture(page, "backfill")
    logged(page, made, f"{runs[0]['runId']}?levels=info&logs=from the archive")
    for day in range(3):
        planned = f"default|{FIRST + timedelta(days=day)}: replay of"
        expect(page.get_by_text(planned).first).to_be_visible()
    picture(page, "plan")


def logged(page: Page, made: Dev, which: str) -> None:
    """Open the log of a run that succeeded, or those of its lines that are asked for."""
    page.goto(f"{made.url}/runs/{which}")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible()


@pytest.mark.parametrize(("name", "tab", "words"), SHOWN)
def test_what_a_run_did_is_on_the_page(
    made: Dev, page: Page, name: str, tab: str, words: tuple[str, ...]
) -> None:
    page.goto(f"{made.url}/assets/{tab}")
    for word in words:
        expect(page.get_by_text(word).first).to_be_visible()
    picture(page, name)


@pytest.mark.parametrize(("name", "asset", "numbers"), PLOTTED)
def test_rows_and_minutes_are_plotted_over_nights(
    made: Dev, page: Page, name: str, asset: str, numbers: tuple[str, ...]
) -> None:
    page.goto(f"{made.url}/assets/{asset}")
    page.get_by_role("button", name="Plots").click()
    for number in numbers:
        expect(page.get_by_text(number, exact=True).first).to_be_visible()
    assert page.locator("canvas").count() >= len(numbers)
    page.get_by_text("Metadata", exact=True).evaluate("heading => heading.scrollIntoView()")
    picture(page, name)


def test_a_day_that_nobody_read_fails_the_run_in_words(made: Dev, page: Page) -> None:
    """The other day is published before: of the file one day is missing, of the lists none."""
    unread = FIRST - timedelta(days=2)
    dialog = asked(page, made, f"[{unread}...{unread + timedelta(days=1)}]")
    dialog.get_by_role("button", name="Launch backfill").click()
    runs = made.settled(3)
    assert runs[0]["status"] == "FAILURE", made.told()
    assert made.backfilled()["status"] == "COMPLETED_FAILED"
    page.goto(f"{made.url}/runs/{runs[0]['runId']}?levels=error|warning")
    for words in ("Failure", "Errored (1)", f"default|{unread}: not read: usage was not read"):
        expect(page.get_by_text(words).first).to_be_visible()
    picture(page, "unread")
