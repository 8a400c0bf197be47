"""How near a sync comes to the rate limit, by the service's own count.

The optimum from first to last request is floor((requests - 1) / 5) windows of one second.
"""

import httpx

from benchmarks.machine import table
from benchmarks.syncing import served, synced

LATENCIES = (0, 80, 300)


def measure() -> str:
    """Sync 63 pages at 5 requests a second, at several latencies; return a table."""
    return table(
        ["latency", "requests", "429s", "most in a second", "first to last", "optimum", "over"],
        [_row(latency) for latency in LATENCIES],
    )


def _row(latency: int) -> list[object]:
    with served(f"--latency-ms={latency}", f"--jitter-ms={latency // 20}") as service:
        synced(service)
        seen = httpx.get(f"{service.url}/__sandbox__/statistics").json()
    requests = int(seen["admitted"])
    optimum = (requests - 1) // 5
    took = seen["last_admitted"] - seen["first_admitted"]
    return [
        f"{latency} ms",
        requests,
        seen["refused"],
        seen["most_admitted_in_any_window"],
        f"{took:.2f} s",
        f"{optimum}.0 s",
        f"{100 * (took / optimum - 1):.1f} %",
    ]
