"""What reading alone costs: memory as a list grows, and rows lost and requests where it shrinks.

`python -m benchmarks.reading` is the process whose memory is measured: it reads and folds nothing.
"""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from random import Random
from typing import Any, TypeVar

from benchmarks.machine import table
from benchmarks.syncing import served
from pipelines import run
from pipelines.api.chain import Chain
from pipelines.api.page import Answer, Page
from pipelines.api.stitch import Taken
from pipelines.cli.sandbox import Service
from pipelines.run import Choice
from pipelines.settings import load
from pipelines.state import runs

SIZES = (10_000, 1_000_000)
ROWS, LIMIT, SCANS = 2_000, 100, 200
RATES = (0.02, 0.2, 2.0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER = Answer("", b"", 200, None, {}, NOW, NOW)
T = TypeVar("T")


def measure() -> str:
    """Return two tables: memory by size, and the chain beside a plain walk by `next_offset`."""
    memory = [[f"{size:,}", *(f"{peak:.0f} MB" for peak in _memory(size))] for size in SIZES]
    lost = [_lost(rate) for rate in RATES]
    columns = ["records removed a request", "plain walk: scans that lose rows", "chain", "requests"]
    return "\n\n".join(
        [table(["usage rows", "peak, first night", "second"], memory), table(columns, lost)]
    )


def _memory(size: int) -> list[float]:
    """Return the peaks of a first night and of a second, which compares the order; no fold."""
    sizes = (f"--usage={size}", "--billing=1", "--partners=1", "--rate=0")
    with served(*sizes, environment={"PARTNER_SYNC_WINDOW": "0"}) as service:
        return [_peak(service) for _night in range(2)]


def _peak(service: Service) -> float:
    program = [sys.executable, "-m", "benchmarks.reading"]
    process = subprocess.Popen(program, env=os.environ | service.environment)
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, program)
    return usage.ru_maxrss / 1024


def _read() -> None:
    """Read usage into the archive and the journal."""
    with run.open(load()) as session:
        (order,) = run.orders(session, Choice(streams=("usage",)))
        for found in run.fetch(session, order).values():
            if isinstance(found, Exception):
                raise found
        runs.end(session.ledger, order.run, "published", session.clock.now())  # else a killed run


@dataclass
class Shrinking:
    """A list in memory that loses rows between its pages."""

    chance: Random
    rate: float
    rows: list[int] = field(default_factory=lambda: list(range(ROWS)))
    seen: set[int] = field(default_factory=set)
    requests: int = 0

    async def page(self, offset: int) -> Taken:
        """Lose some rows, then answer."""
        self.requests += 1
        if self.requests > 1:
            removed = int(self.rate) + (self.chance.random() < self.rate % 1)
            for _row in range(removed):
                self.rows.pop(self.chance.randrange(len(self.rows)))
        found = self.rows[offset : offset + LIMIT]
        self.seen |= set(found)
        more = offset + LIMIT < len(self.rows)
        after = offset + LIMIT if more else None
        keys = [b"%d" % row for row in found]
        return Taken(Page(offset, LIMIT, len(found), more, after, ANSWER), self.requests - 1, keys)


async def _walk(take: Callable[[int], Awaitable[Taken]]) -> None:
    offset: int | None = 0
    while offset is not None:
        offset = (await take(offset)).page.next_offset


def _lost(rate: float) -> list[object]:
    plain = [Shrinking(Random(seed), rate) for seed in range(SCANS)]  # noqa: S311 repeatable
    for each in plain:
        _drive(_walk(each.page))
    chained = [Shrinking(Random(seed), rate) for seed in range(SCANS)]  # noqa: S311 repeatable
    for each in chained:
        _drive(Chain(each.page).read("id"))
    requests = sum(each.requests for each in chained) / sum(each.requests for each in plain)
    return [rate, _share(plain), _share(chained), f"{requests:.2f} x"]


def _share(lists: list[Shrinking]) -> str:
    return f"{ceil(100 * sum(not set(each.rows) <= each.seen for each in lists) / len(lists))} %"


def _drive(coroutine: Coroutine[Any, Any, T]) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits for something")


if __name__ == "__main__":
    _read()
