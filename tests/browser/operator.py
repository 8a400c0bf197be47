"""What an operator clicks in Dagster's UI, and what the pages show."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import (
    Browser,
    FloatRect,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.assets.homes import STREAMS, days_ago
from tests.browser.install import find_chromium

PATIENCE = 120_000  # ms: the daemon looks for backfills every 30 s, and machines are busy
TRIES = 3  # of a dialog
ENABLED_MS = 60_000  # until its button is enabled: the daemon has to report first
WIDTH, HEIGHT = 1300, 900
STACK_TRACE_TOP = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const start = texts.currentNode.data.indexOf("Stack Trace:");
        if (start < 0) continue;
        const range = document.createRange();
        range.setStart(texts.currentNode, start);
        range.setEnd(texts.currentNode, start + 1);
        return range.getBoundingClientRect().top;
    }
}"""


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Yield a browser. Fails if this machine has none."""
    program = find_chromium()
    assert program, "no browser: `python -m tests.browser.install` installs one"
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=root)
        yield chromium
        chromium.close()


def launch_button(dialog: Locator) -> Locator:
    return dialog.get_by_role("button", name=re.compile("^Launch "))


class Operator:
    """A person with a browser. `PICTURES=folder` keeps pictures of what the person sees."""

    def __init__(self, page: Page, connection: str) -> None:
        self.page = page
        self.connection = connection

    def sees(self, *texts: str) -> None:
        for text in texts:
            expect(self.page.get_by_text(text).first).to_be_visible()

    def select_days(self, days: str) -> Locator:
        """Select days of the connection for the raw assets in the catalog; return the dialog.

        Dagster's button stayed disabled in one of some hundred dialogs. A person opens it again.
        """
        for _try in range(TRIES):
            dialog = self._dialog(days)
            with suppress(AssertionError):
                expect(launch_button(dialog)).to_be_enabled(timeout=ENABLED_MS)
                return dialog
        raise AssertionError(f"{days} cannot be launched")

    def _dialog(self, days: str) -> Locator:
        self.page.goto("/assets")
        for stream in STREAMS:
            box = self.page.get_by_test_id(f"checkbox-raw/{stream}")
            self.page.locator("label", has=box).click()
        self.page.get_by_role("button", name="Materialize selected").click()
        dialog = self.page.locator(".dagster-portal", has_text="Partition selection")
        expect(dialog.get_by_text(days_ago(0).isoformat()).first).to_be_visible()
        dialog.get_by_text("Select a partition or create one").click()
        self.page.get_by_role("menuitem", name=self.connection).click()
        self.page.keyboard.press("Escape")
        dialog.get_by_placeholder("ex: ").fill(days)
        dialog.get_by_placeholder("ex: ").press("Tab")
        return dialog

    def launch(self, dialog: Locator) -> None:
        """Launch what is selected and open its page."""
        launch_button(dialog).click()
        message = self.page.get_by_text(re.compile(r"(Launched run|Created backfill) \w+")).first
        run_id = message.inner_text().split()[2]
        # Notifications move, and go after some seconds: a click of the mouse may miss them.
        view = self.page.get_by_label("Notifications").get_by_text("View", exact=True)
        view.first.dispatch_event("click")
        expect(self.page).to_have_url(re.compile(run_id))

    def launch_today(self) -> None:
        self.launch(self.select_days(days_ago(0).isoformat()))

    def terminate(self) -> None:
        """Stop the run whose page is open."""
        self.page.get_by_role("button", name="Terminate").click()
        self.page.get_by_role("button", name="Terminate 1 run").click()

    def filter_log(self, text: str) -> None:
        self.page.get_by_placeholder("Filter…").fill(text)

    def sees_days(self, stream: str, **counts: int) -> None:
        """See how many days of a stream are failed, materialized and missing."""
        self.page.goto(f"/assets/raw/{stream}?view=partitions")
        self.sees(*(f"{name.capitalize()} ({count})" for name, count in counts.items()))

    def picture(self, name: str, height: int = HEIGHT) -> None:
        """Keep a picture, if asked to, without stack traces: they show paths of this machine."""
        if folder := os.environ.get("PICTURES"):
            self.page.wait_for_timeout(1000)  # animations
            bottom = min(height, self.page.evaluate(STACK_TRACE_TOP) or height)
            clip: FloatRect = {"x": 0, "y": 0, "width": WIDTH, "height": bottom}
            self.page.screenshot(path=Path(folder) / f"{name}.png", clip=clip)


@contextmanager
def browser(url: str, connection: str) -> Iterator[Operator]:
    """Yield an operator who looks at a webserver."""
    expect.set_options(timeout=PATIENCE)
    size: ViewportSize = {"width": WIDTH, "height": HEIGHT}
    with open_chromium() as chromium:
        page = chromium.new_page(base_url=url, viewport=size, timezone_id="UTC")
        page.set_default_timeout(PATIENCE)
        yield Operator(page, connection)
