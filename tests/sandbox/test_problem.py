"""Failures: each is a problem with the five members, and headers are on every response.

Not here: when a caller is refused (test_authentication, test_limits).
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import pytest

from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.options import Limits, Options
from sandbox.server import Server, base_url, bind
from sandbox.service import layered, parts, routes
from tests.sandbox.running import Running, started

HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


class Failure(NamedTuple):
    method: str
    path: str
    status: int
    slug: str
    known: bool = True


FAILURES = [
    Failure("GET", "/v2/partners?limit=0", 400, "bad_request"),
    Failure("GET", "/v2/partners", 401, "unauthorized", known=False),
    Failure("GET", "/", 404, "not_found"),
    Failure("GET", "/v2", 404, "not_found"),
    Failure("GET", "/v2/partners/", 404, "not_found"),
    Failure("GET", "/V2/partners", 404, "not_found"),
    Failure("GET", "/docs/nothing", 404, "not_found"),
    Failure("GET", "/v2/%E2%82%AC%20x", 404, "not_found"),
    Failure("POST", "/v2/partners", 405, "method_not_allowed"),
    Failure("DELETE", "/healthz", 405, "method_not_allowed"),
    Failure("PUT", "/docs/", 405, "method_not_allowed"),
    Failure("HEAD", "/v2/usage", 405, "method_not_allowed"),
    Failure("PROPFIND", "/v2/usage", 405, "method_not_allowed"),
]


@pytest.fixture(scope="module")
def generous() -> Iterator[Running]:
    """A limiter that shows its headers and lets one unauthenticated request through at a time."""
    with started("--rate", "1000", "--window", "0.02", "--usage", "10") as running:
        yield running


@pytest.mark.parametrize("failure", FAILURES)
def test_every_failure_is_a_problem(generous: Running, failure: Failure) -> None:
    time.sleep(0.03)
    with generous.client(generous.token() if failure.known else None) as client:
        answer = client.request(failure.method, failure.path)
    assert answer.status_code == failure.status
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.headers) >= HEADERS
    if failure.method != "HEAD":
        problem = answer.json()
        assert set(problem) >= {"type", "title", "status", "detail", "instance"}
        assert problem["type"] == f"{generous.url}/problems/{failure.slug}"
        assert problem["title"] == failure.slug.replace("_", " ").title()
        assert problem["status"] == failure.status
        assert problem["instance"] == failure.path.partition("?")[0]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v2/usage"), ("GET", "/oauth/token")])
def test_a_405_says_what_is_allowed(sandbox: Running, method: str, path: str) -> None:
    with sandbox.client() as client:
        answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == ("GET" if path.startswith("/v2") else "POST")
    assert answer.headers["content-type"] == "application/problem+json"


def test_successes_have_the_headers_too(generous: Running) -> None:
    with generous.client(generous.token()) as client:
        for path in ("/v2/whoami", "/v2/usage", "/docs", "/docs/", "/healthz", "/readiness"):
            answer = client.get(path)
            assert answer.status_code < 400
            assert set(answer.headers) >= HEADERS


@contextmanager
def broken() -> Iterator[tuple[str, str]]:
    """Serve, from a thread, the service with one more route that fails; gives address and token."""
    with bind(0) as bound:
        client = Client("demo", "s")
        options = Options((client,), base_url(bound), sizes=Sizes(1, 1, 1), limits=Limits(1000))
        made = parts(options)
        api = routes(made)

        @api.get("/v2/broken")
        async def fail() -> None:
            raise RuntimeError("secret reason")

        server = Server(layered(api, made), "ready")
        thread = threading.Thread(target=asyncio.run, args=[server.serve(sockets=[bound])])
        thread.start()
        try:
            yield options.base_url, str(made.provider.issue(client)["access_token"])
        finally:
            server.should_exit = True
            thread.join(5)


def test_a_failure_of_the_server_itself_is_a_problem(capfd: pytest.CaptureFixture[str]) -> None:
    with broken() as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{url}/v2/broken", headers=headers, trust_env=False)
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.headers) >= HEADERS
    assert answer.json()["type"] == f"{url}/problems/internal_server_error"
    assert "secret reason" not in answer.text
    assert "secret reason" in capfd.readouterr().err  # the operator does see it
