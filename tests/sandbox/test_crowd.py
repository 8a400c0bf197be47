"""100 clients at once that never wait: nobody gets more than the limit, nothing fails."""

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.sandbox.running import Running, clients_file, started

CLIENTS = 100
ACTORS = 20  # five clients share each window
SECONDS = 3.0
WARM_SHARE = 0.2  # of the time: caches fill, then memory must stay
PATHS = ("/v2/usage?limit=500", "/v2/billing", "/v2/partners", "/v2/whoami", "/nowhere", "/healthz")
ENTRY = '[[clients]]\nid = "actor-{0}"\nsecret = "s"\nactor = "distributor"\n'


@dataclass(frozen=True)
class Seen:
    """What the crowd saw: answers by status, the server's statistics, its memory in MB."""

    statuses: Counter[int]
    counted: dict[str, Any]
    warm: float
    end: float


def memory(running: Running) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


async def press(http: httpx.AsyncClient, token: str, asked: int, until: float) -> Counter[int]:
    """Ask again and again, beginning with another path each; one in ten without the token."""
    statuses: Counter[int] = Counter()
    while time.monotonic() < until:
        headers = {"Authorization": f"Bearer {token}"} if asked % 10 else {}
        answer = await http.get(PATHS[asked % len(PATHS)], headers=headers)
        statuses[answer.status_code] += 1
        asked += 1
    return statuses


async def crowd(running: Running, tokens: list[str]) -> Seen:
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(
        base_url=running.url, limits=limits, trust_env=False, timeout=30
    ) as http:
        until = time.monotonic() + SECONDS
        clients = [
            asyncio.create_task(press(http, tokens[number % ACTORS], number, until))
            for number in range(CLIENTS)
        ]
        await asyncio.sleep(SECONDS * WARM_SHARE)
        warm = memory(running)
        statuses = sum(await asyncio.gather(*clients), Counter[int]())
    return Seen(statuses, running.statistics(), warm, memory(running))


def test_a_crowd_never_exceeds_the_window_and_breaks_nothing(tmp_path: Path) -> None:
    file = clients_file(tmp_path, "".join(map(ENTRY.format, range(ACTORS))))
    with started("--clients", str(file), "--usage", "5000", "--billing", "500") as running:
        tokens = [running.token(f"actor-{number}", "s") for number in range(ACTORS)]
        seen = asyncio.run(crowd(running, tokens))
    assert max(seen.statuses) < 500
    assert seen.counted["most_admitted_in_any_window"] <= 5
    callers = seen.counted["callers"].values()
    assert ACTORS // 2 < len(callers) <= ACTORS  # a busy machine is slow to begin
    addresses = seen.counted["unauthenticated"].values()
    assert max(one["most_admitted_in_any_window"] for one in addresses) == 1
    for one in callers:
        # Of the server's own clock: a busy machine makes the crowd take longer.
        windows = int(one["last_admitted"] - one["first_admitted"]) + 1
        assert one["admitted"] <= 5 * windows
    assert min(seen.statuses[status] for status in (200, 401, 404, 429)) > 0
    assert seen.end < seen.warm + 15
