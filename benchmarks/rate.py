"""How near a sync comes to the rate limit, by the service's own count.

About 300 requests by three streams side by side. The optimum from first to last request is
floor((requests - 1) / 5) windows of one second, plus one latency. `BENCH_RUNS` repeats each row,
`BENCH_SIDE_BY_SIDE` of them at a time: every sync has a sandbox and a home of its own, and mostly
waits.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

import httpx

from benchmarks.machine import table
from benchmarks.syncing import served, synced

LIMIT = 5
SIZES = ("--partners=10000", "--usage=50000", "--billing=10000")  # 100 pages each
# Latency and jitter of each way in milliseconds; the last two: 40 % of the latency, both ways.
PATHS = ((0, 0), (150, 4), (400, 4), (150, 30), (400, 80))
COLUMNS = [
    "latency",
    "jitter a way",
    "runs",
    "requests",
    "429s",
    "most in a second",
    "first to last",
    "optimum",
    "over",
    "worst",
]


@dataclass(frozen=True)
class Seen:
    """What the service counted of one sync; `took` and `optimum` in seconds."""

    admitted: int
    refused: int
    most: int
    took: float
    optimum: float

    @property
    def over(self) -> float:
        """How far over the optimum, in percent."""
        return 100 * (self.took / self.optimum - 1)


def measure() -> str:
    """Sync at several latencies; return a table."""
    runs = int(os.environ.get("BENCH_RUNS", "1"))
    side_by_side = int(os.environ.get("BENCH_SIDE_BY_SIDE", "1"))
    with ThreadPoolExecutor(side_by_side) as pool:
        seen = {path: [pool.submit(_synced, *path) for _ in range(runs)] for path in PATHS}
        rows = [_row(path, [each.result() for each in futures]) for path, futures in seen.items()]
    text = table(COLUMNS, rows)
    if any(each.result().refused for futures in seen.values() for each in futures):
        raise SystemExit(f"{text}\n\na sync met a 429")
    return text


def _synced(latency: int, jitter: int) -> Seen:
    with served(f"--latency-ms={latency}", f"--jitter-ms={jitter}", *SIZES) as service:
        synced(service)
        counted = httpx.get(f"{service.url}/__sandbox__/statistics", trust_env=False).json()
    admitted = int(counted["admitted"])
    return Seen(
        admitted,
        int(counted["refused"]),
        int(counted["most_admitted_in_any_window"]),
        counted["last_admitted"] - counted["first_admitted"],
        (admitted - 1) // LIMIT + latency / 1000,
    )


def _row(path: tuple[int, int], seen: list[Seen]) -> list[object]:
    latency, jitter = path
    return [
        f"{latency} ms",
        f"{jitter} ms",
        len(seen),
        max(each.admitted for each in seen),
        sum(each.refused for each in seen),
        max(each.most for each in seen),
        f"{median(each.took for each in seen):.2f} s",
        f"{seen[0].optimum:.2f} s",
        f"{median(each.over for each in seen):.1f} %",
        f"{max(each.over for each in seen):.1f} %",
    ]
