"""A service of three lists that a kept home was read from: the interface over HTTP, no sandbox.

It imports nothing of the project, so that it runs beside the code of any release.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Lists = Mapping[str, Sequence[Mapping[str, Any]]]
WHO = {"actor": "distributor", "id": "kept"}
LIFETIME = 3600  # seconds of a token


class Service(ThreadingHTTPServer):
    """Serves `lists`; its time is that of `clock`, a function that returns Unix seconds."""

    daemon_threads = True

    def __init__(self, lists: Lists, clock: Callable[[], float] = time.time) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lists = lists
        self.clock = clock
        self.requests = 0

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # a client that ends need not say so
            super().handle()

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        now = int(self.server.clock())
        claims = {**WHO, "sub": "kept", "exp": now + LIFETIME, "iat": now, "scope": "read"}
        token = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}.c2ln"
        self._answer({"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME})

    def do_GET(self) -> None:
        self.server.requests += 1
        asked = urlsplit(self.path)
        name = asked.path.removeprefix("/v2/")
        if asked.path == "/v2/whoami":
            self._answer(WHO)
        elif name in self.server.lists:
            query = {key: int(found[0]) for key, found in parse_qs(asked.query).items()}
            self._answer(_page(self.server.lists[name], **query))
        else:
            self._answer({"type": "about:blank", "title": "Not Found", "status": 404}, 404)

    def _answer(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        now = self.server.clock()
        self.send_response_only(status)
        self.send_header("Date", format_datetime(datetime.fromtimestamp(now, UTC), usegmt=True))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-RateLimit-Limit", "1000")
        self.send_header("X-RateLimit-Remaining", "990")
        self.send_header("X-RateLimit-Reset", str(int(now) + 1))
        self.end_headers()
        self.wfile.write(body)


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _page(rows: Sequence[object], limit: int = 20, offset: int = 0) -> dict[str, Any]:
    end = offset + limit
    has_more = end < len(rows)
    pagination = {
        "limit": limit,
        "offset": offset,
        "has_more": has_more,
        "next_offset": end if has_more else None,
        "prev_offset": max(0, offset - limit) if offset else None,
    }
    return {"data": rows[offset:end], "pagination": pagination}


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Serve for the block."""
    with service:
        thread = Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()
