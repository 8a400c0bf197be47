"""`NIGHTS=3 make dev` as a process, and a real browser on its UI.

Here: beginning and ending both, waiting for runs over GraphQL, pictures. Not here: what is clicked
and what must be seen then (watching.py).
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.chromium import found

ROOT = Path(__file__).parents[2]
NIGHTS = 3
READY_SECONDS = 240  # three nights of 14 s each, and Dagster's start
RUN_SECONDS = 240
RUNS = "{ runsOrError { ... on Runs { results { runId status jobName } } } }"
CHAIN = "__ASSET_JOB"  # runs of schedules and sensors have jobs of their own
UNDER_WAY = {"REQUESTED", "COMPLETING", "FAILING"}
BACKFILLS = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { %s } } } }"


@dataclass(frozen=True)
class Dev:
    """A running `make dev`: its UI's address and its log."""

    url: str
    log: Path

    def asked(self, query: str) -> Any:
        """Ask Dagster's GraphQL something."""
        answer = httpx.post(f"{self.url}/graphql", json={"query": query}, trust_env=False)
        return answer.raise_for_status().json()["data"]

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs that somebody asked assets for, newest first."""
        told = self.asked(RUNS)
        return [run for run in told["runsOrError"]["results"] if run["jobName"] == CHAIN]

    def backfills(self) -> list[dict[str, Any]]:
        """Return all backfills, newest first."""
        told = self.asked(BACKFILLS % "id status numPartitions")
        results: list[dict[str, Any]] = told["partitionBackfillsOrError"]["results"]
        return results

    def settled(self, count: int) -> list[dict[str, Any]]:
        """Wait until there are so many runs and each has ended; return them."""
        until = time.monotonic() + RUN_SECONDS
        while time.monotonic() < until:
            runs = self.runs()
            over = [run for run in runs if run["status"] in {"SUCCESS", "FAILURE", "CANCELED"}]
            if len(over) == len(runs) >= count:
                return runs
            time.sleep(1)
        raise AssertionError(f"not {count} runs in {RUN_SECONDS} s: {self.runs()}, {self.told()}")

    def backfilled(self) -> dict[str, Any]:
        """Wait until the last backfill has ended: the daemon looks a moment after its run."""
        until = time.monotonic() + RUN_SECONDS
        while self.backfills()[0]["status"] in UNDER_WAY and time.monotonic() < until:
            time.sleep(1)
        return self.backfills()[0]

    def told(self) -> str:
        """Return the last words of its log."""
        return self.log.read_text(errors="replace")[-2000:]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@contextmanager
def dev(folder: Path) -> Iterator[Dev]:
    """Start `make dev` on a home of its own after three nights; end it as Ctrl-C does."""
    port = free_port()
    own = {"NIGHTS": str(NIGHTS), "DEV_HOME": str(folder / "partner-sync"), "DEV_PORT": str(port)}
    log = folder / "dev.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "assets.dev"],
            cwd=ROOT,
            env=os.environ | own,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    opened = Dev(f"http://127.0.0.1:{port}", log)
    try:
        _until_ready(opened, process)
        yield opened
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _until_ready(opened: Dev, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, f"make dev has ended: {opened.told()}"
        try:
            if opened.asked("{ assetNodes { id } }")["assetNodes"]:
                return
        except (httpx.TransportError, httpx.HTTPStatusError):
            pass
        time.sleep(1)
    raise AssertionError(f"the UI was not there after {READY_SECONDS} s: {opened.told()}")


@contextmanager
def browser() -> Iterator[Page]:
    """Open a page in a headless browser of the system."""
    program = found()
    assert program, "no browser: make test-browser installs Debian's chromium, or says why not"
    expect.set_options(timeout=30_000)  # a busy machine takes long to show a page
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, headless=True)
        page = started.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(30_000)
        yield page
        started.close()


def picture(page: Page, name: str) -> None:
    """Keep what is seen, where `make screenshots` asks for it."""
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(1500)  # what moves comes to rest
        page.screenshot(path=Path(folder) / f"{name}.png")
