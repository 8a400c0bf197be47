"""What reading alone costs: memory as a list grows, rows lost where it shrinks, requests by list.

`python -m benchmarks.reading` is the process whose memory is measured: it reads and folds nothing.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from random import Random
from typing import Any, TypeVar

from benchmarks.machine import table
from benchmarks.syncing import served
from pipelines import run
from pipelines.api.before import Before
from pipelines.api.page import Answer, Page
from pipelines.api.reader import Reader
from pipelines.api.source import Take
from pipelines.api.stitch import Taken
from pipelines.cli.sandbox import Service
from pipelines.run import Choice
from pipelines.settings import load
from pipelines.state import runs
from pipelines.state.proof import Grade
from tests.api import unstable

SIZES = (10_000, 1_000_000)
ROWS, LIMIT, SCANS = 2_000, 100, 200
RATES = (0.02, 0.2, 2.0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER = Answer("", b"", 200, None, {}, NOW, NOW)
T = TypeVar("T")


COUNTED = 1_000  # rows of a list whose order moves
KINDS: dict[str, Callable[[Random], unstable.Unstable]] = {
    "ties of 2": lambda chance: _ties(2, chance),
    "ties of 7": lambda chance: _ties(7, chance),
    "ties of 60": lambda chance: _ties(60, chance),
    "ties of 700": lambda chance: _ties(700, chance),
    "the whole list one tie": lambda chance: _ties(COUNTED, chance),
    "last change first, two rows change per request": lambda chance: unstable.last_change(
        COUNTED, LIMIT, chance, head=True
    ),
    "last change last, two rows change per request": lambda chance: unstable.last_change(
        COUNTED, LIMIT, chance, head=False
    ),
    "1 % repeated, near": lambda chance: unstable.repeated(COUNTED, LIMIT, chance, near=True),
    "1 % repeated, far apart": lambda chance: unstable.repeated(COUNTED, LIMIT, chance, near=False),
    "1 % repeated, one row moved": lambda chance: unstable.repeated_and_moved(
        COUNTED, LIMIT, chance, near=True
    ),
    "ties of 7, one row added at each end per ten requests": lambda chance: unstable.growing(
        _ties(7, chance)
    ),
    "ties of 7, one row removed per ten requests": lambda chance: unstable.shrinking(
        _ties(7, chance)
    ),
}


def _ties(size: int, chance: Random) -> unstable.Unstable:
    return unstable.ties(size, COUNTED, LIMIT, chance)


def measure() -> str:
    """Return three tables: memory by size, rows lost beside a plain walk, cost by kind of list."""
    memory = [[f"{size:,}", *(f"{peak:.0f} MB" for peak in _memory(size))] for size in SIZES]
    lost = [_lost(rate) for rate in RATES]
    columns = ["records removed a request", "plain walk: scans that lose rows", "sync", "requests"]
    return "\n\n".join(
        [
            table(["usage rows", "peak, first night", "second"], memory),
            table(columns, lost),
            costs(),
        ]
    )


def costs() -> str:
    """Return a table: what lists whose order moves cost, in plain passes, by kind."""
    columns = ["list", "median", "95 %", "next scan, median", "95 %", "proven", "rows lost"]
    return table(columns, [_cost(name) for name in KINDS])


def _cost(name: str) -> list[object]:
    """Read so many lists of a kind, each twice: the second time with what the first one learnt."""
    costs: list[list[float]] = [[], []]
    proven = lost = 0
    for seed in range(SCANS):
        last, before = None, Before()
        for scan in range(2):
            rows = KINDS[name](Random(1000 * scan + seed))  # noqa: S311 repeatable
            reader, last = rows.read(last, before)
            before = Before(last.places or last.rows)
            costs[scan].append(last.requests * LIMIT / COUNTED)
            proven += last.grade is not Grade.PARTIAL
            loaded = {row for page in rows.shown[reader.superseded :] for row in page}
            lost += last.grade is not Grade.PARTIAL and not rows.lived <= loaded
    figures = [
        f"{sorted(each)[at]:.1f}" for each in costs for at in (SCANS // 2, SCANS * 95 // 100)
    ]
    return [name, *figures, f"{100 * proven / (2 * SCANS):.1f} %", lost]


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

    async def page(self, offset: int, _step: int = 0) -> Taken:
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


async def _walk(take: Take) -> None:
    offset: int | None = 0
    while offset is not None:
        offset = (await take(offset, 0)).page.next_offset


def _lost(rate: float) -> list[object]:
    plain = [Shrinking(Random(seed), rate) for seed in range(SCANS)]  # noqa: S311 repeatable
    for each in plain:
        _drive(_walk(each.page))
    chained = [Shrinking(Random(seed), rate) for seed in range(SCANS)]  # noqa: S311 repeatable
    for each in chained:
        _drive(Reader(each.page).read("id"))
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
