"""A request that has its slot and waits for a token when a 429 arrives does not leave."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.core.text import Redactor
from pipelines.http.client import ServiceClient
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import RateLimiter
from tests.http.support import page_reply, partner

PAUSE = 1  # second
WAIT_SECONDS = 60  # on a busy machine


class Service:
    """The first page is refused while the second token is asked for, which comes after that."""

    def __init__(self) -> None:
        self.arrived: list[float] = []
        self.page_arrived, self.token_asked, self.refused = (threading.Event() for _ in range(3))
        self.refused_at = 0.0
        self.tokens = 0

    def token(self) -> bytes:
        self.tokens += 1
        if self.tokens > 1:
            self.token_asked.set()
            assert self.refused.wait(WAIT_SECONDS)
            time.sleep(0.1)  # until the client has the 429
        return json.dumps({"access_token": f"t{self.tokens}"}).encode()

    def page(self) -> int:
        is_first = not self.page_arrived.is_set()
        self.arrived.append(time.monotonic())
        self.page_arrived.set()
        if is_first:
            assert self.token_asked.wait(WAIT_SECONDS)
            self.refused_at = time.monotonic()
        return 429 if is_first else 200


@contextmanager
def served(service: Service) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.reply(200, service.token())

        def do_GET(self) -> None:
            status = service.page()
            self.reply(status, page_reply().body)
            if status != 200:
                service.refused.set()

        def reply(self, status: int, body: bytes) -> None:
            self.send_response_only(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("retry-after", str(PAUSE))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def ask(url: str, folder: Path, service: Service) -> None:
    metadata, clock = Metadata.open(folder / "metadata.db"), Clock()
    limiter, settings = RateLimiter(metadata, url, clock), Settings(home=Home(folder))
    client = ServiceClient(partner(url), settings, limiter, Redactor(), clock)
    async with client.http:
        first = asyncio.create_task(client.page("/v2/usage", 0, 10, repr))
        await asyncio.to_thread(service.page_arrived.wait, WAIT_SECONDS)
        client._next_token_at = 0.0
        client._token = None  # so that the next request, which has its slot, asks for one
        await asyncio.gather(first, *(client.page(f"/v2/{n}", 0, 10, repr) for n in "ab"))
    metadata.close()


def test_what_was_about_to_leave_waits_for_the_pause(tmp_path: Path) -> None:
    service = Service()
    with served(service) as url:
        asyncio.run(ask(url, tmp_path, service))
    assert len(service.arrived) == 4
    assert sorted(service.arrived)[1] >= service.refused_at + PAUSE
    assert service.tokens == 2
