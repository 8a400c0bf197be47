"""One process that reads lists through the limiter: `python -m benchmarks.rate_client` (internal).

Prints a line of JSON: when each request was sent (Unix seconds) and its status.
"""

import argparse
import asyncio
import json
import time
from collections import deque
from pathlib import Path
from typing import Any

import httpx

from pipelines.core.clock import SystemClock
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import RateLimiter, Slot

SENT, ANSWERED = "send_request_headers.complete", "receive_response_headers.complete"


class Client:
    """Sends page requests as the transport of partner-sync does, without retries."""

    def __init__(self, http: httpx.AsyncClient, limiter: RateLimiter) -> None:
        self.sent: list[tuple[float, int]] = []
        self._http = http
        self._limiter = limiter

    async def ask(self, path: str, offset: int) -> None:
        """Send one request and read its answer."""
        async with self._limiter.slot() as slot:

            async def trace(event: str, _info: dict[str, Any]) -> None:
                _note(slot, event)

            request = self._http.build_request(
                "GET", path, params={"offset": offset}, extensions={"trace": trace}
            )
            answer = await self._http.send(request, stream=True)
            slot.status, slot.headers = answer.status_code, answer.headers
        await answer.aread()
        await answer.aclose()
        self.sent.append((slot.sent_at or 0.0, answer.status_code))

    async def read_list(self, path: str, requests: int) -> None:
        """Read a list of so many pages; ask for pages ahead while the limiter has spare room."""
        under_way: deque[asyncio.Task[None]] = deque()
        for number in range(requests):
            while under_way and not self._limiter.spare():
                await under_way.popleft()
            under_way.append(asyncio.create_task(self.ask(path, 20 * number)))
            await asyncio.sleep(0)
        for task in under_way:
            await task


def _note(slot: Slot, event: str) -> None:
    if event.endswith(SENT):
        slot.sent_at = time.time()
    elif event.endswith(ANSWERED):
        slot.answered_at = time.time()


async def _read(options: argparse.Namespace) -> list[tuple[float, int]]:
    metadata = Metadata.open(Path(options.metadata))
    limiter = RateLimiter(metadata, "benchmark", SystemClock())
    signed = {"Authorization": f"Bearer {options.token}"}
    paths = [f"/v2/{name}" for name in ("partners", "usage", "billing")][: options.lists]
    async with httpx.AsyncClient(base_url=options.url, headers=signed, trust_env=False) as http:
        client = Client(http, limiter)
        each = options.requests // len(paths)
        await asyncio.gather(*(client.read_list(path, each) for path in paths))
    metadata.close()
    return client.sent


def main() -> None:
    """Read the lists and print what was sent."""
    parser = argparse.ArgumentParser()
    for name in ("url", "metadata", "token"):
        parser.add_argument(name)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--lists", type=int, default=3)
    print(json.dumps(asyncio.run(_read(parser.parse_args()))))


if __name__ == "__main__":
    main()
