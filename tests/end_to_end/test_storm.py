"""After a 429 arrived, no request of the process leaves before its time, on a busy machine too.

The client's own monotonic clock proves it: it reads the headers of a 429 at one moment and lets
requests leave at others. The sandbox counts the same arrivals, so that none is missing.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.homes import make_home
from tests.sandbox.running import SMALL, Running, started

SYNCS, SECONDS = 20, 150.0  # as many as fit
BUSY = "while True: pass"


@contextmanager
def busy_processes(count: int = 2) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def moments(file: Path) -> list[tuple[str, float, float]]:
    lines = (line.split() for line in file.read_text().splitlines())
    return [(word, float(at), float(seconds)) for word, at, seconds in lines]


def early(lines: list[tuple[str, float, float]]) -> list[float]:
    """Return how many seconds too early requests left, of those that left too early."""
    free_from, found = 0.0, []
    for word, at, seconds in lines:
        if word == "heard":
            free_from = max(free_from, at + seconds)
        elif at < free_from:
            found.append(free_from - at)
    return found


def watched_sync(root: Path, file: Path, *names: str) -> int:
    command = [sys.executable, "-m", "tests.end_to_end.watched_sync", str(file), *names]
    environment = os.environ | {"PARTNER_SYNC_HOME": str(root)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def requests(service: Running) -> int:
    counted = service.statistics()
    return int(counted["admitted"] + counted["refused"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_request_leaves_between_a_429_and_its_time(tmp_path: Path) -> None:
    with started("--latency-ms", "40", "--fault", "storm-seconds:/v2/*:6", *SMALL) as service:
        home = make_home(tmp_path / "home", service)
        make_home(home.root, service, "twin")  # the same actor
        file, lines, began = (
            tmp_path / "moments",
            list[tuple[str, float, float]](),
            time.monotonic(),
        )
        syncs = 0
        with busy_processes():
            while syncs < SYNCS and time.monotonic() < began + SECONDS:
                assert watched_sync(home.root, file, "acme", "twin") == 0
                lines += moments(file)
                syncs += 1
        refused = service.told("GET", "/faults")["faults"][0]["befallen"]
        answered = requests(service)
    assert early(lines) == []
    heard = sum(word == "heard" for word, _, _ in lines)
    assert heard == refused >= syncs
    left = len(lines) - heard
    # Of each account, a token and the description are not counted.
    assert left - 4 * syncs <= answered <= left
