"""One process that reads three lists through the client: `python -m benchmarks.rate_client`.

Sends one request, prints `ready`, waits for a line on standard input, then prints a line of JSON
for each request: its status, and Unix seconds of sending.
"""

import argparse
import asyncio
import json
import sys
from collections import deque
from pathlib import Path

from pipelines.config.connections import Connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.core.text import Redactor
from pipelines.http.client import Attempt, ServiceClient
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import RateLimiter

PATHS = ("/v2/partners", "/v2/usage", "/v2/billing")
PAGE_SIZE = 20


def _report(attempt: Attempt) -> None:
    print(json.dumps([attempt.status, attempt.sent_at]), flush=True)


async def _ask(client: ServiceClient, path: str, page: int) -> None:
    _report(await client.page(path, PAGE_SIZE * page, PAGE_SIZE, _report))


async def _read_list(client: ServiceClient, path: str, pages: int) -> None:
    """Read one list; request pages ahead while part of the limit is unused."""
    under_way: deque[asyncio.Task[None]] = deque()
    for page in range(pages):
        while under_way and not client.limiter.spare():
            await under_way.popleft()
        under_way.append(asyncio.create_task(_ask(client, path, page)))
        await asyncio.sleep(0)  # it counts as under way from now on
    await asyncio.gather(*under_way)


async def _read(url: str, audience: str, folder: Path, requests: int) -> None:
    clock = Clock()
    metadata = Metadata.open(folder / "metadata.db")
    connection = Connection(
        name="benchmark",
        base_url=url,
        auth_url=url,
        audience=audience,
        client_id="demo",
        secret="SANDBOX_CLIENT_SECRET",  # noqa: S106 - the name of a variable
    )
    limiter = RateLimiter(metadata, "benchmark", clock)
    settings = Settings(home=Home(folder))
    client = ServiceClient(connection, settings, limiter, Redactor(), clock)
    async with client.http:
        await client.page(PATHS[0], 0, 1, lambda _failed: None)  # a token, a connection
        print("ready", flush=True)
        sys.stdin.readline()
        pages = requests // len(PATHS)
        await asyncio.gather(*(_read_list(client, path, pages) for path in PATHS))
    metadata.close()


def main() -> None:
    """Read the lists."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("audience")
    parser.add_argument("folder", type=Path)
    parser.add_argument("requests", type=int)
    options = parser.parse_args()
    asyncio.run(_read(options.url, options.audience, options.folder, options.requests))


if __name__ == "__main__":
    main()
