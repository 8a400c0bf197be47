"""Receivers of alerts, real ones on this machine: one of JSON by POST, one of mail by SMTP.

They keep what they were sent, and refuse what a test wants refused.
"""

import base64
import json
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast


@dataclass
class Hook:
    """What was posted to it, and with what it answers."""

    url: str = ""
    status: int = 204
    paths: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def titles(self, which: str = "alerts") -> list[set[str]]:
        """Return which alerts each post named."""
        return [{each["alert"] for each in body[which]} for body in self.bodies]


@contextmanager
def hook() -> Iterator[Hook]:
    """Serve a webhook."""
    kept = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            if kept.status < 300:
                kept.paths.append(self.path)
                kept.bodies.append(json.loads(text))
            self.send_response(kept.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}/hook/canary-url-5c1"
        with _serving(server):
            yield kept


@dataclass
class Post:
    """A mail server: its door, who may come in, and the letters that it took."""

    port: int = 0
    login: tuple[str, str] | None = None
    refuses: str = ""
    letters: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    encrypted: bool = False


@contextmanager
def post(trust: ssl.SSLContext | None = None, *, at_once: bool = False) -> Iterator[Post]:
    """Serve SMTP; with a certificate by STARTTLS, or from the first byte on."""
    kept = Post()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if trust and at_once:
                self._encrypt()
            _Conversation(kept, self, trust if not at_once else None).hold()

        def encrypt(self) -> None:
            self._encrypt()

        def _encrypt(self) -> None:
            assert trust is not None
            self.request = self.connection = trust.wrap_socket(self.request, server_side=True)
            self.rfile = cast("Any", self.connection.makefile("rb"))
            self.wfile = cast("Any", self.connection.makefile("wb", buffering=0))
            kept.encrypted = True

        def finish(self) -> None:
            for each in (self.rfile, self.wfile, self.connection):
                each.close()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Say nothing: a client that does not trust us hangs up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        kept.port = server.server_address[1]
        with _serving(server):
            yield kept


@dataclass
class _Conversation:
    """One client of the mail server."""

    kept: Post
    line: Any
    tls: ssl.SSLContext | None
    welcome: bool = False

    def hold(self) -> None:
        self._say("220 ready")
        while words := self.line.rfile.readline().decode().strip():
            if words.upper() == "QUIT":
                self._say("221 bye")
                return
            self._answer(words)

    def _answer(self, words: str) -> None:
        verb = words.split(" ", maxsplit=1)[0].upper()
        if verb == "EHLO":
            more = ["250-STARTTLS"] if self.tls else []
            more += ["250-AUTH PLAIN"] if self.kept.login else []
            self._say("\r\n".join(["250-here", *more, "250 8BITMIME"]))
        elif verb == "STARTTLS":
            self._say("220 go on")
            self.line.encrypt()
            self.tls = None
        elif verb == "AUTH":
            said = base64.b64decode(words.split(" ")[2]).decode().split("\0")
            self.welcome = tuple(said[1:]) == self.kept.login
            self._say("235 welcome" if self.welcome else f"535 refused: {words}")
        elif verb == "RCPT" and self.kept.refuses in words and self.kept.refuses:
            self._say("550 nobody of that name")
        elif verb == "DATA":
            self._take()
        else:
            allowed = self.kept.login is None or self.welcome
            if verb == "RCPT":
                self.kept.recipients.append(words.partition(":")[2].strip("<>"))
            self._say("250 well" if allowed else "530 sign in first")

    def _take(self) -> None:
        self._say("354 tell")
        lines = list(iter(self.line.rfile.readline, b".\r\n"))
        letter = message_from_bytes(b"".join(lines), policy=policy.default)
        self.kept.letters.append(letter)
        self._say("250 taken")

    def _say(self, words: str) -> None:
        self.line.wfile.write(f"{words}\r\n".encode())


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
