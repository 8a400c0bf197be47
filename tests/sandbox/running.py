"""A running sandbox as tests see it: start and end of the process, credentials, control routes.

It imports nothing of pipelines, as the sandbox does not.
"""

import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from tests.forked import Forked, Program

READY = re.compile(r"sandbox ready: (https?://127\.0\.0\.1:\d+) \((.*), (secrets? in (.+))\)\n")
SECRET = "not secret: made for the tests"
API_KEY = "no-key-but-the-tests"
AUDIENCE = "partner-sync-sandbox"
ENVIRONMENT = {"SANDBOX_CLIENT_SECRET": SECRET, "SANDBOX_API_KEY": API_KEY}
SMALL = ("--partners", "25", "--usage", "1500", "--billing", "150")
END_SECONDS = 10  # to end after a signal, on a busy machine
CLIENTS = """
[[clients]]
id = "whole"
secret = "s-whole"
actor = "distributor"

[[clients]]
id = "reseller"
secret = "s-reseller"
actor = "partner"

[[clients]]
id = "merchant"
secret = "s-merchant"
actor = "organization"

[[clients]]
id = "narrow"
secret = "s-narrow"
actor = "distributor"
scopes = ["partners:read"]
"""


@dataclass(frozen=True)
class Running:
    """One sandbox process that has said that it is ready."""

    process: Forked
    url: str
    line: str
    place: str

    @property
    def connection(self) -> dict[str, str]:
        """The fields of a connection to the partner surface; set ``ENVIRONMENT`` beside it."""
        return {
            "base_url": self.url,
            "auth_url": self.url,
            "audience": AUDIENCE,
            "client_id": "demo",
            "secret": "SANDBOX_CLIENT_SECRET",
        }

    @property
    def merchant_connection(self) -> dict[str, str]:
        """The same for the merchant surface."""
        return {"surface": "merchant", "base_url": self.url, "secret": "SANDBOX_API_KEY"}

    def client(self, token: str | None = None, key: str | None = None) -> httpx.Client:
        """Give a client of this sandbox, with or without a bearer token or an API key."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"x-api-key": key} if key else {}
        return httpx.Client(
            base_url=self.url, headers=headers, trust_env=False, verify=self.trusted()
        )

    def trusted(self) -> ssl.SSLContext | bool:
        """Give what vouches for it, where it serves HTTPS."""
        named = re.search(r"authority in (\S+),", self.line)
        return ssl.create_default_context(cafile=named[1]) if named else False

    def token_answer(self, **changed: Any) -> httpx.Response:
        """Ask for a token with the right body, some fields changed (None leaves one out)."""
        right = {
            "client_id": "demo",
            "client_secret": SECRET,
            "audience": AUDIENCE,
            "grant_type": "client_credentials",
        }
        body = {name: value for name, value in (right | changed).items() if value is not None}
        with self.client() as client:
            return client.post("/oauth/token", json=body)

    def token(self, client_id: str = "demo", secret: str = SECRET) -> str:
        """Fetch a token."""
        answer = self.token_answer(client_id=client_id, client_secret=secret)
        assert answer.status_code == 200, answer.text
        token = answer.json()["access_token"]
        assert isinstance(token, str)
        return token

    def statistics(self) -> Any:
        """Read what the server has counted."""
        with self.client() as client:
            return client.get("/__sandbox__/statistics").json()

    def control(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Ask a control route for something."""
        with self.client() as client:
            return client.request(method, f"/__sandbox__{path}", json=body)

    def told(self, method: str, path: str, body: Any = None) -> Any:
        """The same where it must not be refused; give what it says."""
        answer = self.control(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def fault(self, name: str, path: str | None = None, **scope: Any) -> int:
        """Switch a fault on: ``every``, ``after``, ``times``, ``value``; give its id."""
        body = {"name": name, **({"path": path} if path else {}), **scope}
        return int(self.told("POST", "/faults", body)["id"])

    def befallen(self, number: int) -> int:
        """Count the requests that a fault befell."""
        faults = self.told("GET", "/faults")["faults"]
        return int(next(one["befallen"] for one in faults if one["id"] == number))

    def change(self, name: str, **changes: Any) -> None:
        """Let a list change: rates per page by kind, ``where``, ``order``."""
        self.told("POST", "/changes", {"list": name, **changes})

    def reset(self) -> None:
        """Switch off every fault and change, put records into their places, count from zero."""
        self.told("POST", "/reset")

    @contextmanager
    def scan(self, name: str) -> Iterator[dict[str, list[str]]]:
        """Watch a list; the yielded dictionary holds the truth once the block has ended."""
        truth: dict[str, list[str]] = {}
        number = self.told("POST", "/scans", {"list": name})["id"]
        yield truth
        truth |= self.told("POST", f"/scans/{number}/end")

    def records(self, path: str, limit: int | None = None) -> list[Any]:
        """Read a whole list by its next_offset."""
        found: list[Any] = []
        params = {} if limit is None else {"limit": limit}
        with self.client(self.token()) as client:
            offset: int | None = 0
            while offset is not None:
                answer = client.get(path, params=params | {"offset": offset}).raise_for_status()
                found += answer.json()["data"]
                offset = answer.json()["pagination"]["next_offset"]
        return found


def command(*options: str) -> list[str]:
    """Give the command line of a sandbox."""
    return [sys.executable, "-m", "sandbox", *options]


@contextmanager
def started(*options: str, secret: str | None = SECRET, awkward: bool = True) -> Iterator[Running]:
    """Start a sandbox on a free port and end it; ``secret`` None lets it make its own.

    Its data are awkward unless a test wants ordinary ones.
    """
    options = (*options, *(["--awkward"] if awkward else []))
    environment = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    if secret:
        environment |= ENVIRONMENT | {"SANDBOX_CLIENT_SECRET": secret}
    arguments = ["--port", "0", *options]
    ours, theirs = os.pipe()
    with os.fdopen(ours, encoding="utf-8") as output:
        with Connection(theirs, readable=False) as connection:
            program = Program("sandbox", arguments, environment, connection, with_errors=False)
            process = Forked(program)
        try:
            line = output.readline()
            ready = READY.fullmatch(line)
            assert ready, line
            yield Running(process, ready[1], line, ready[4])
        finally:
            code = _end(process)
        printed = output.read()
    assert (code, printed) == (0, "")


def _end(process: Forked) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return process.wait()


def clients_file(folder: Path, text: str = CLIENTS, mode: int = 0o600) -> Path:
    """Write a clients file."""
    file = folder / "clients.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file
