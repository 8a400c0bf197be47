"""A real service on 127.0.0.1 that answers each request as the test says, byte for byte."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

JSON = "application/json"
PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Reply:
    """An answer; `length` is what Content-Length says where it is not the body's."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass(frozen=True)
class Asked:
    """A request that arrived, in seconds of the monotonic clock."""

    at: float
    method: str
    target: str
    headers: dict[str, str]


def page(records: list[Any], offset: int = 0, following: int | None = None) -> Reply:
    paging = {"limit": 500, "offset": offset, "has_more": following is not None}
    body = {"data": records, "pagination": paging | {"next_offset": following}}
    return Reply(body=json.dumps(body).encode(), headers={"Content-Type": JSON})


def problem(status: int, detail: str, **headers: str) -> Reply:
    body = json.dumps({"status": status, "title": "Title", "detail": detail}).encode()
    return Reply(status, body, {"Content-Type": PROBLEM} | headers)


@dataclass
class Service:
    """Answers one after the other from a script, the last of them for ever; tokens always."""

    script: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    docs: dict[str, Reply] = field(default_factory=dict)  # by path; what is not there is a 404
    looked: list[Asked] = field(default_factory=list)

    def reply(self, asked: Asked) -> Reply:
        if asked.target.endswith("/oauth/token"):
            token = {"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}
            return Reply(body=json.dumps(token).encode())
        if not self.script:
            self.looked.append(asked)
            return self.docs.get(asked.target, Reply(404))
        self.asked.append(asked)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def _handler(reply: Callable[[Asked], Reply]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10
        wbufsize = -1  # one packet an answer: two would wait for each other's acknowledgement

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = reply(Asked(monotonic(), self.command, self.path, dict(self.headers)))
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(said.length or len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)
            self.close_connection = said.length is not None

        do_GET = do_POST = answer  # noqa: N815 (the base's names)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
            """Say nothing."""

    return Handler


@contextmanager
def serving(*script: Reply) -> Iterator[Service]:
    """Serve a script on a free port."""
    service = Service(list(script))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(service.reply))
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
