"""The sandbox under a crowd: 200 clients at once that never wait, whatever they are told.

Held by tests/sandbox/test_crowd.py for three seconds; here for thirty.
"""

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.machine import table

CLIENTS = 200
ACTORS = 40  # so that five clients share each window
SECONDS = 30.0
WARM = 0.2  # of the time: caches fill, then memory must stay
PATHS = ("/v2/usage?limit=500", "/v2/billing", "/v2/partners", "/v2/whoami", "/nowhere", "/healthz")
AUDIENCE = "partner-sync-sandbox"


@dataclass(frozen=True)
class Seen:
    """What a crowd saw: answers by status, the server's own count, its memory in MB."""

    statuses: Counter[int]
    counted: dict[str, Any]
    warm: float
    end: float

    @property
    def most(self) -> int:
        """The most requests that any authenticated actor had admitted in any window."""
        return int(self.counted["most_admitted_in_any_window"])

    @property
    def failures(self) -> int:
        """Answers of 500 and above."""
        return sum(count for status, count in self.statuses.items() if status >= 500)  # noqa: PLR2004


@contextmanager
def _served() -> Iterator[tuple[int, str]]:
    """Start a sandbox that knows every actor; yield its process id and address."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "clients.toml"
        file.touch(0o600)
        entries = (f'id = "actor-{n}"\nsecret = "s"\nactor = "distributor"' for n in range(ACTORS))
        file.write_text("".join(f"[[clients]]\n{entry}\n" for entry in entries), encoding="utf-8")
        command = [sys.executable, "-m", "sandbox", "--port=0", f"--clients={file}"]
        sizes = ["--usage=5000", "--billing=500"]
        with subprocess.Popen([*command, *sizes], stdout=subprocess.PIPE, text=True) as process:
            ready = process.stdout.readline() if process.stdout else ""
            try:
                yield process.pid, re.findall(r"http://\S+", ready)[0]
            finally:
                process.terminate()


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


async def _token(http: httpx.AsyncClient, actor: int) -> str:
    credentials = {"client_id": f"actor-{actor}", "client_secret": "s", "audience": AUDIENCE}
    body = credentials | {"grant_type": "client_credentials"}
    answer = await http.post("/oauth/token", json=body)
    return str(answer.raise_for_status().json()["access_token"])


async def _press(http: httpx.AsyncClient, token: str, until: float) -> Counter[int]:
    """Ask again and again; a request in ten comes without the token."""
    statuses: Counter[int] = Counter()
    asked = 0
    while time.monotonic() < until:
        headers = {"Authorization": f"Bearer {token}"} if asked % 10 else {}
        answer = await http.get(PATHS[asked % len(PATHS)], headers=headers)
        statuses[answer.status_code] += 1
        asked += 1
    return statuses


async def _crowd(pid: int, url: str, seconds: float) -> Seen:
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, limits=limits, trust_env=False, timeout=30) as http:
        tokens = [await _token(http, actor) for actor in range(ACTORS)]
        until = time.monotonic() + seconds
        crowd = [
            asyncio.create_task(_press(http, tokens[one % ACTORS], until)) for one in range(CLIENTS)
        ]
        await asyncio.sleep(seconds * WARM)
        warm = _memory(pid)
        statuses = sum(await asyncio.gather(*crowd), Counter[int]())
        counted = (await http.get("/__sandbox__/statistics")).json()
    return Seen(statuses, counted, warm, _memory(pid))


def gathered(seconds: float) -> Seen:
    """Let the crowd press for so long."""
    with _served() as (pid, url):
        return asyncio.run(_crowd(pid, url, seconds))


def measure() -> str:
    """Press for half a minute; return a table."""
    seen = gathered(SECONDS)
    columns = ["clients", "requests", "a second", "429", "5xx", "most in a window", "memory"]
    requests = seen.statuses.total()
    row = [
        CLIENTS,
        f"{requests:,}",
        f"{requests / SECONDS:,.0f}",
        f"{seen.statuses[429]:,}",
        seen.failures,
        seen.most,
        f"{seen.warm:.1f} to {seen.end:.1f} MB",
    ]
    return table(columns, [row])
