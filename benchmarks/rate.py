"""How near a sync comes to the rate limit, by the service's own count.

About 300 requests by three streams side by side. The optimum from first to last request is
floor((requests - 1) / 5) windows of one second, plus one latency. `BENCH_RUNS` repeats each row,
`BENCH_SIDE_BY_SIDE` of them at a time: every sync has a sandbox and a home of its own, and mostly
waits.

Then the same beside another client of the actor: it sends 3 requests a second evenly, whatever the
answers say, and begins a second before the sync. What is left to the sync is the limit less what
the service admitted of the other client in the same time.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

from benchmarks.machine import table
from benchmarks.syncing import served, synced
from pipelines.state import database, runs
from tests.other_client import sending

LIMIT, TOO_MANY = 5, 429
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
SHARED_SIZES = ("--partners=4000", "--usage=20000", "--billing=4000")  # 40 pages each
SHARED_PATHS = ((0, 0), (150, 4), (400, 4))
SHARED_COLUMNS = [
    *("latency", "runs", "seconds", "others a second", "left a second", "ours a second"),
    *("used of the rest", "worst", "429s of ours", "429s of others"),
]
# Seconds from one of its requests to the next: three of them are a little longer than the window.
# Of requests exactly a third of a second apart, the service counts four in some windows.
INTERVAL = 0.338


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
    """Sync at several latencies, alone and beside another client; return two tables."""
    repeats = int(os.environ.get("BENCH_RUNS", "1"))
    side_by_side = int(os.environ.get("BENCH_SIDE_BY_SIDE", "1"))
    with ThreadPoolExecutor(side_by_side) as pool:
        seen = {path: [pool.submit(_synced, *path) for _ in range(repeats)] for path in PATHS}
        beside = {
            path: [pool.submit(_beside, *path) for _ in range(repeats)] for path in SHARED_PATHS
        }
        rows = [_row(path, [each.result() for each in futures]) for path, futures in seen.items()]
        shared = [
            _shared_row(path, [each.result() for each in some]) for path, some in beside.items()
        ]
    text = table(COLUMNS, rows)
    text += "\n\nBeside another client of the actor:\n\n" + table(SHARED_COLUMNS, shared)
    if any(each.result().refused for futures in seen.values() for each in futures):
        raise SystemExit(f"{text}\n\na sync met a 429")
    return text


@dataclass(frozen=True)
class Beside:
    """A sync beside another client: requests per second of both, 429s of both, its seconds."""

    took: float
    others: float
    ours: float
    refused: int
    others_refused: int

    @property
    def used(self) -> float:
        """The share of what the other client left, in percent."""
        return 100 * self.ours / (LIMIT - self.others)


def _beside(latency: int, jitter: int) -> Beside:
    options = (f"--latency-ms={latency}", f"--jitter-ms={jitter}", *SHARED_SIZES)
    with served(*options) as service, sending(service, INTERVAL) as other:
        time.sleep(1.0)
        synced(service)
        ledger = database.connect(Path(service.environment["PARTNER_SYNC_HOME"]) / "state")
        calls = [call for some in runs.calls(ledger, 0, 1000) for *_, call in some if call.stream]
        ledger.dispose()
    sent = sorted(call.sent_at.timestamp() for call in calls)
    begun, took = sent[0], sent[-1] - sent[0]
    refused = sum(call.status == TOO_MANY for call in calls)
    ours = (len(calls) - 1 - refused) / took
    return Beside(took, other.admitted(begun, sent[-1]) / took, ours, refused, len(other.refused))


def _shared_row(path: tuple[int, int], seen: list[Beside]) -> list[object]:
    others = median(each.others for each in seen)
    return [
        f"{path[0]} ms",
        len(seen),
        f"{median(each.took for each in seen):.1f}",
        f"{others:.2f}",
        f"{LIMIT - others:.2f}",
        f"{median(each.ours for each in seen):.2f}",
        f"{median(each.used for each in seen):.1f} %",
        f"{min(each.used for each in seen):.1f} %",
        sum(each.refused for each in seen),
        sum(each.others_refused for each in seen),
    ]


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
