"""How much of the rate limit many actors get from the limiter alone, without any HTTP.

Each actor may send 5 requests a second, and each answer takes 50 ms. The actors are shared out
among the processes, which share one metadata database: a SQLite file, or a PostgreSQL server that
is started for it.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.machine import machine, table
from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import RateLimiter
from pipelines.rate_limit.rows import LimitOptions, Slot
from tests.postgresql import running_server

RATE: Final = 5  # requests a second
ANSWER_SECONDS: Final = 0.05
SECONDS: Final = 20.0
COLUMNS: Final = ("database", "actors", "processes", "requests/s", "of the limit", "cores in all")
START_SECONDS: Final = 15.0  # until every process has started


async def _send(limiter: RateLimiter, clock: Clock, ends: float) -> int:
    """Send requests one after the other; return how many."""
    sent = 0
    while time.time() < ends:
        slot = Slot()
        async with limiter.hold(slot):
            slot.sent_at = clock.time()
            await asyncio.sleep(ANSWER_SECONDS)
            slot.answered_at = clock.time()
            slot.status = 200
        sent += 1
    return sent


async def _send_all(metadata: Metadata, actors: range, ends: float) -> int:
    clock = Clock()
    senders = []
    for actor in actors:
        limiter = RateLimiter(metadata, f"actor-{actor}", clock, LimitOptions())
        senders += [_send(limiter, clock, ends) for _one in range(2)]
    return sum(await asyncio.gather(*senders))


def _child(arguments: list[str]) -> None:
    """Send for some actors from a moment on; print how many requests, and CPU seconds."""
    file, url, first, end, begins = arguments
    with closing(Metadata.open(Path(file), url or None)) as metadata:
        time.sleep(max(float(begins) - time.time(), 0))
        before = time.process_time()
        ends = float(begins) + SECONDS
        sent = asyncio.run(_send_all(metadata, range(int(first), int(end)), ends))
        print(sent, time.process_time() - before)


def _measure(file: Path, url: str, actors: int, processes: int) -> tuple[float, float]:
    """Return requests a second and cores, of all processes together."""
    begins = time.time() + START_SECONDS
    share = actors // processes
    command = [sys.executable, "-m", "benchmarks.limiter", str(file), url]
    children = []
    for number in range(processes):
        part = [str(number * share), str((number + 1) * share), str(begins)]
        children.append(subprocess.Popen([*command, *part], stdout=subprocess.PIPE, text=True))
    printed = [child.communicate()[0].split() for child in children]
    sent = sum(int(count) for count, _cpu in printed)
    cpu = sum(float(seconds) for _count, seconds in printed)
    return sent / SECONDS, cpu / SECONDS


@contextmanager
def _databases() -> Iterator[dict[str, tuple[Path, str]]]:
    """Yield the file and the URL of each kind of database."""
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        sqlite, postgresql = (Path(folder, name, "metadata.db") for name in ("sqlite", "server"))
        for file in (sqlite, postgresql):
            file.parent.mkdir()
        yield {"SQLite": (sqlite, ""), "PostgreSQL": (postgresql, server.url)}


def main(arguments: list[str]) -> None:
    """Measure; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks limiter", description=__doc__)
    parser.add_argument("--actors", type=int, default=32)
    options = parser.parse_args(arguments)
    rows = []
    with _databases() as databases:
        for name, (file, url) in databases.items():
            for processes in (1, 4):
                rate, cores = _measure(file, url, options.actors, processes)
                share = f"{rate / (RATE * options.actors):.1%}"
                row = (name, options.actors, processes, f"{rate:.1f}", share, f"{cores:.2f}")
                rows.append(row)
    print(f"{machine()}\n`python -m benchmarks limiter {' '.join(arguments)}`\n")
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    _child(sys.argv[1:])
