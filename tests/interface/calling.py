"""Calling a running sandbox: who calls, over which surface, from which address.

Here: clients of both surfaces, callers that nobody has been yet, the problem a failure must be.
Not here: the tables of the document (routes), what is expected of each clause (the tests).
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt

from tests.interface.routes import PARTNER_READS
from tests.sandbox.running import Running

ACTORS = ("distributor", "partner", "organization")
CROWD = 70  # callers of each kind; every test takes those that it needs
HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
MEMBERS = {"type", "title", "status", "detail", "instance"}
PROBLEM = "application/problem+json"


def crowd() -> str:
    """Write the clients and keys of a sandbox whose limiter is tested."""
    clients = [
        f'[[clients]]\nid = "{actor}-{number}"\nsecret = "s"\nactor = "{actor}"\n'
        for actor in ACTORS
        for number in range(CROWD)
    ]
    # Two keys to an organization; internal ones, so that its standing does not matter.
    keys = [
        f'[[keys]]\nid = "key-{number}-{which}"\nkey = "key-number-{number}-{which}"\n'
        f'organization = {number}\nlogin = "login-{number}"\ninternal = true\n'
        for number in range(CROWD)
        for which in "ab"
    ]
    return "".join(clients + keys)


@dataclass(frozen=True)
class Limited:
    """A sandbox with a limiter, and callers whose windows are empty."""

    running: Running
    _known: Iterator[int] = field(default_factory=lambda: iter(range(CROWD)))
    _addresses: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def tokens(self, actor: str, count: int = 1) -> list[str]:
        """Give tokens of one actor that has not called yet."""
        name = f"{actor}-{next(self._known)}"
        return [self.running.token(name, "s") for _ in range(count)]

    def actor(self, actor: str = "distributor") -> httpx.Client:
        """Give a client of an actor that has not called yet."""
        return self.running.client(self.tokens(actor)[0])

    def keys(self) -> tuple[str, str]:
        """Give two keys of an organization that has not called yet."""
        number = next(self._known)
        return f"key-number-{number}-a", f"key-number-{number}-b"

    def stranger(self) -> httpx.Client:
        """Give a client without credentials, from an address that has not called yet."""
        address = f"127.0.9.{next(self._addresses)}"
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(base_url=self.running.url, transport=transport)


@dataclass(frozen=True)
class Surfaces:
    """A sandbox without a limiter, and a client of each surface that may do everything."""

    running: Running
    bearer: httpx.Client
    keyed: httpx.Client

    def of(self, path: str) -> httpx.Client:
        """Give the client of the surface that a path belongs to."""
        return self.bearer if path.partition("?")[0] in PARTNER_READS else self.keyed

    def get(self, path: str, **params: int | str) -> httpx.Response:
        """Read with the credentials of the path's surface; paths may name an example."""
        return self.of(path).get(self.filled(path), params=params)

    def page(self, path: str, **params: int | str) -> Any:
        """Read a page, which must succeed."""
        return self.get(path, **params).raise_for_status().json()

    def pages(self, path: str, limit: int) -> Iterator[Any]:
        """Read all pages of a list by their next_offset."""
        offset: int | None = 0
        while offset is not None:
            yield (page := self.page(path, limit=limit, offset=offset))
            offset = page["pagination"]["next_offset"]

    def filled(self, path: str) -> str:
        """Put identifiers that exist into a path."""
        if "{" not in path:
            return path
        parameters = self.operation("get", path)["parameters"]
        names = {one["name"]: one["example"] for one in parameters if one["in"] == "path"}
        return path.format(**names)

    def described(self) -> Any:
        """Read the interface description."""
        return self.bearer.get("/docs/openapi.json").raise_for_status().json()

    def operation(self, method: str, path: str) -> Any:
        """Give the description of one operation."""
        return self.described()["paths"][path][method]


def assert_problem(answer: httpx.Response, status: int) -> Any:
    """Insist on a problem of this status; gives its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    found = answer.json()
    assert set(found) >= MEMBERS
    return found


def shown(answer: httpx.Response) -> tuple[int, int]:
    """Give limit and remaining of an answer that must carry all three headers."""
    limit, remaining, reset = (int(answer.headers[name]) for name in HEADERS)
    assert reset > 0
    return limit, remaining


def claims(token: str) -> Any:
    """Give what a token says, its signature aside."""
    return jwt.decode(token, options={"verify_signature": False})


def until(reached: Callable[[], bool], seconds: float) -> bool:
    """Ask until it is so, at most this long."""
    ends = time.monotonic() + seconds
    while not (so := reached()) and time.monotonic() < ends:
        time.sleep(0.02)
    return so
