"""A gate before the object store, which a test shuts, or holds at a request of its choice.

The store itself keeps all that it has. Here: real HTTP on a port of its own, passed on whole. Not
here: what a run makes of it (test_store).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread

from tests.distributed.servers import free_port

HOST = "127.0.0.1"
OF_A_HOP = {"connection", "content-length", "expect", "keep-alive", "transfer-encoding"}
PATIENCE = 60.0  # seconds in which what is waited for comes, or the test fails


class Gate:
    """A way to the store: open, shut, or held by a test at requests of its choice."""

    def __init__(self, store: int) -> None:
        """Lead to the port of a store; not open yet."""
        self.store, self.port = store, free_port()
        # Told of a request ("PUT /bucket/name"), before it is passed on or when it is answered.
        self.at: dict[str, Callable[[str], None]] = {"before": _nothing, "after": _nothing}
        self.shut = Event()
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"http://{HOST}:{self.port}"

    def open(self) -> None:
        """Listen, on the same port each time."""
        self.shut.clear()
        self._server = ThreadingHTTPServer((HOST, self.port), self._passing())
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Refuse every connection from now on, and answer nothing on those that there are."""
        self.shut.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _passing(self) -> type[BaseHTTPRequestHandler]:
        gate = self

        class Passing(_Passing):
            to = gate

        return Passing


class _Passing(BaseHTTPRequestHandler):
    """One connection of a client, and its requests one after the other."""

    protocol_version = "HTTP/1.1"
    to: Gate

    def do_PUT(self) -> None:
        """Pass a request on, and the answer back, unless the gate is shut by then."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = f"{self.command} {self.path}"
        self.to.at["before"](line)
        if not self.to.shut.is_set():
            answer = self._asked(body)
            self.to.at["after"](line)
        self.close_connection = self.to.shut.is_set()
        if not self.close_connection:
            self._answer(*answer)

    do_GET = do_HEAD = do_POST = do_DELETE = do_PUT  # noqa: N815 the names that http.server looks for

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        store = HTTPConnection(HOST, self.to.store, timeout=PATIENCE)
        given = {name: text for name, text in self.headers.items() if name.lower() not in OF_A_HOP}
        store.request(self.command, self.path, body, given)
        answer = store.getresponse()
        found = answer.status, answer.getheaders(), answer.read()
        store.close()
        return found

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, text in headers:
            if name.lower() not in OF_A_HOP:
                self.send_header(name, text)
        size = dict(headers).get("Content-Length") if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(size or 0))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as the base class has it
        """Say nothing."""


def _nothing(_line: str) -> None:
    """Let it through."""


class Nth:
    """The request of a number among those that begin like a pattern, and what happens at it."""

    def __init__(self, like: str, number: int, act: Callable[[], object]) -> None:
        """Wait for it; the first one is number 1."""
        self.like, self.left, self.act = re.compile(like), number, act
        self.met = Event()

    def __call__(self, line: str) -> None:
        """Look at a request of a gate."""
        if self.like.match(line):
            self.left -= 1
            if self.left == 0:
                self.met.set()
                self.act()


class OneByOne:
    """So many requests like a pattern that all have come before the first is passed on."""

    def __init__(self, like: str, count: int) -> None:
        """Wait for so many, then let one pass after the other."""
        self.like, self.count = re.compile(like), count
        self.lines: list[str] = []
        self.all, self.turn = Event(), Lock()

    def before(self, line: str) -> None:
        """Wait for the others, then for a turn."""
        if self.like.match(line):
            self.lines.append(line)
            if len(self.lines) == self.count:
                self.all.set()
            self.all.wait(PATIENCE)
            self.turn.acquire()

    def after(self, line: str) -> None:
        """Let the next one pass."""
        if self.like.match(line):
            self.turn.release()


@contextmanager
def standing(store: int) -> Iterator[Gate]:
    """Open a gate before a store until the block ends."""
    gate = Gate(store)
    gate.open()
    try:
        yield gate
    finally:
        gate.close()
