"""The client over real sockets: what reaches the service, and what the user reads when it fails."""

import asyncio
import gzip
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from pipelines.api import client
from pipelines.api.client import Client
from pipelines.api.page import Page
from pipelines.clock import SYSTEM, Clock
from pipelines.errors import (
    ConfigurationError,
    RateLimited,
    ServiceError,
    Unavailable,
)
from pipelines.settings import Connection, Secret, Settings
from pipelines.state.runs import Call
from pipelines.streams import STREAMS
from pipelines.streams.usage import USAGE
from tests.api.service import Reply, Service, page, problem, serving
from tests.virtual import Haste

SECRET = "canary-51d07e"
MEBIBYTE = 1024 * 1024
T = TypeVar("T")


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", SECRET)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")


@dataclass
class Desk:
    """Where a test asks from: what was recorded, and what was waited without waiting."""

    url: str
    haste: Haste = field(default_factory=Haste)
    calls: list[Call] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)

    async def record(self, call: Call) -> None:
        self.calls.append(call)

    def ask(self, question: Callable[[Client], Awaitable[T]], clock: Clock | None = None) -> T:
        connection = Connection(
            "default",
            self.url,
            self.url,
            "api",
            "me",
            Secret("PARTNER_SYNC_CLIENT_SECRET"),
            ca_file=self.settings.ca_file,
        )

        async def main() -> T:
            chosen = clock or self.haste.clock
            async with client.connect(connection, self.settings, chosen, self.record) as service:
                return await question(service)

        return asyncio.run(main())

    def usage(self) -> Page:
        return self.ask(lambda service: service.page(USAGE, 0))


def failing(*script: Reply) -> tuple[str, Service]:
    """Return what a user reads when usage is asked for, and the service that was asked."""
    with serving(*script) as service, pytest.raises(ServiceError) as caught:
        Desk(service.url).usage()
    return str(caught.value).replace(service.url, "URL"), service


def test_a_page_is_asked_for_at_the_documents_limit_and_signed() -> None:
    with serving(page([])) as service:
        desk = Desk(service.url)
        for stream in STREAMS:
            desk.ask(lambda service, stream=stream: service.page(stream, 0))  # type: ignore[misc]
        desk.ask(lambda service: service.page(USAGE, offset=0, limit=1))
    targets = [asked.target for asked in service.asked]
    assert targets == [
        "/v2/billing?limit=100&offset=0",
        "/v2/partners?limit=100&offset=0",
        "/v2/usage?limit=500&offset=0",
        "/v2/usage?limit=1&offset=0",
    ]
    assert {asked.headers["Authorization"] for asked in service.asked} == {"Bearer t1"}
    assert {asked.headers["Accept-Encoding"] for asked in service.asked} == {"gzip"}


def test_a_page_arrives_with_what_the_headers_say() -> None:
    headers = {"x-ratelimit-LIMIT": "5", "X-RateLimit-Remaining": "4", "x-REQUEST-id": "r-1"}
    body = gzip.compress(page([{"id": 1}], 0, 500).body)
    with serving(Reply(200, body, headers | {"Content-Encoding": "gzip"})) as service:
        desk = Desk(service.url)
        read = desk.usage()
    assert (read.rows, read.next_offset) == (1, 500)
    assert gzip.decompress(body) == read.answer.body
    assert read.answer.request_id == "r-1"
    assert read.answer.rate_limit == {"x-ratelimit-limit": "5", "x-ratelimit-remaining": "4"}
    assert read.answer.sent_at <= read.answer.answered_at
    token, call = desk.calls
    assert (token.path, token.stream, token.status) == ("/oauth/token", None, 200)
    assert (call.path, call.stream, call.query) == ("/v2/usage", "usage", "limit=500&offset=0")
    assert (call.remaining, call.request_id, call.error) == (4, "r-1", None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(status: int) -> None:
    with serving(page([])) as elsewhere:
        words, service = failing(
            Reply(status, headers={"Location": elsewhere.url + "/x?session=1"})
        )
    assert words == f"127.0.0.1 redirects to {elsewhere.url}/x; set base_url"
    assert (len(service.asked), elsewhere.asked) == (1, [])


HTML = b"<html><body>Please sign in</body></html>"
AT = "/v2/usage at offset 0"
BUSY = "/v2/usage: service unavailable"
# What the service answers for ever; what the user reads; how often it was asked.
FAILURES: list[tuple[Reply, str, int]] = [
    (Reply(200, HTML), f"{AT}: answer is not whole JSON after 2 tries in 0 s: {HTML.decode()}", 2),
    (Reply(200, page([]).body[:-9]), f"{AT}: answer is not whole JSON after 3 tries in ", 3),
    (Reply(200, b"[]"), f"{AT}: no page of a list: ", 2),
    (Reply(200, b'{"data": []}'), f"{AT}: page has no pagination object after 2 tries in ", 2),
    (page([], offset=5), f"{AT}: the page says that it is at offset 5", 1),
    (problem(403, "scope missing"), "403 on /v2/usage: scope missing", 1),
    (problem(401, "bad"), "token rejected: check audience and client (401 on /v2/usage: ", 2),
    (problem(404, "no such path"), "/v2/usage does not exist at URL (404)", 1),
    (problem(422, "bad \x1b[31mlimit"), "422 on /v2/usage: Title: bad  [31mlimit", 1),
    (problem(409, "conflict"), f"{BUSY} (409) after 3 tries in ", 3),
    (problem(503, "down", **{"Retry-After": "8"}), f"{BUSY} (503) after 6 tries in 40 s: down", 6),
    (Reply(502, HTML), f"{BUSY} (502) after 6 tries in ", 6),
    (Reply(204), f"{AT}: answer is not whole JSON after 3 tries in ", 3),
    (Reply(304), "304 on /v2/usage", 1),
    (
        Reply(200, b'{"data": [', length=10_810),
        "/v2/usage: answer broke off after 10 of 10,810 bytes (connection closed) after 6 tries",
        6,
    ),
    (
        Reply(200, b"no gzip", {"Content-Encoding": "gzip"}),
        "/v2/usage: answer cannot be decompressed after 6 tries in ",
        6,
    ),
    (
        Reply(200, HTML, {"Content-Encoding": "br"}),
        "/v2/usage: answer in an encoding that was not asked for",
        1,
    ),
    (
        problem(429, "slow down", **{"Retry-After": "3600"}),
        "429 on /v2/usage: server asks to wait 3,600 s; run ends resumable at ",
        1,
    ),
    (
        problem(503, "down", **{"Retry-After": "301"}),
        "503 on /v2/usage: server asks to wait 301 s; run ends",
        1,
    ),
]


@pytest.mark.parametrize(("reply", "words", "times"), FAILURES)
def test_what_a_user_reads_when_it_goes_on_failing(reply: Reply, words: str, times: int) -> None:
    read, service = failing(reply)
    assert read.startswith(words)
    assert len(service.asked) == times
    assert SECRET not in read


def test_what_passes_is_asked_again_until_it_has_passed() -> None:
    with serving(Reply(502), Reply(200, b"{", length=99), problem(503, "x"), page([{}])) as service:
        desk = Desk(service.url)
        assert desk.usage().rows == 1
    assert len(service.asked) == 4
    assert [call.status for call in desk.calls] == [200, 502, 200, 503, 200]


def test_65_kilobytes_of_gzip_do_not_fill_the_memory() -> None:
    bomb = gzip.compress(b"[" + b" " * (64 * MEBIBYTE))
    assert len(bomb) < 66 * 1024
    words, service = failing(Reply(200, bomb, {"Content-Encoding": "gzip"}))
    assert words == "/v2/usage: answer larger than 64 MiB refused"
    assert len(service.asked) == 1


def test_nobody_answers_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    desk = Desk(f"http://127.0.0.1:{port}")
    with pytest.raises(
        Unavailable, match=rf"^no connection to 127.0.0.1:{port} after 6 tries in \d+ s$"
    ):
        desk.usage()
    assert [call.error for call in desk.calls] == ["ConnectError"] * 6
    # The provider is not asked more than once a second, not even by a retry.
    assert sum(desk.haste.waits) >= 5


def test_a_429_is_waited_out() -> None:
    """The one test that waits: a second, by the system's clock and the server's."""
    refusal = problem(429, "slow down", **{"retry-AFTER": "1", "X-RateLimit-Remaining": "0"})
    with serving(refusal, page([])) as service:
        desk = Desk(service.url)
        desk.ask(lambda service: service.page(USAGE, 0), SYSTEM)
    first, second = service.asked
    assert 1.0 <= second.at - first.at < 3.0
    assert desk.calls[1].remaining == 0
    assert desk.calls[2].waited > 0.9


def test_twenty_429s_in_a_row_are_the_answer() -> None:
    with serving(problem(429, "slow down", **{"Retry-After": "60"})) as service:
        desk = Desk(service.url)
        with pytest.raises(RateLimited, match=r"^429 on /v2/usage: slow down$"):
            desk.usage()
    assert len(service.asked) == 20
    assert sum(desk.haste.waits) >= 19 * 60


def test_the_body_may_ask_for_more_than_the_header() -> None:
    refusal = Reply(429, b'{"retry_after_seconds": 90}', {"Retry-After": "30"})
    with serving(refusal, page([])) as service:
        desk = Desk(service.url)
        desk.usage()
    assert 90 <= sum(desk.haste.waits) < 90.3


def test_whoami_is_an_object() -> None:
    with serving(Reply(200, b'{"actor": "distributor", "scopes": []}')) as service:
        desk = Desk(service.url)
        assert desk.ask(lambda service: service.whoami()) == {"actor": "distributor", "scopes": []}
    assert service.asked[0].target == "/v2/whoami"


@pytest.mark.parametrize("body", [b"[]", b"", b'{"a": "\xff"}', b'{"a":' + b"[" * 100_000])
def test_whoami_that_is_none(body: bytes) -> None:
    with serving(Reply(200, body)) as service:
        desk = Desk(service.url)
        with pytest.raises(Unavailable, match=r"^/v2/whoami: answer is not a JSON object after 2 "):
            desk.ask(lambda service: service.whoami())
    assert len(service.asked) == 2


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_that_will_not_do(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    desk = Desk("https://service.invalid", settings=Settings(ca_file=file))
    with pytest.raises(ConfigurationError, match=r"^ca_file .*ca\.pem: "):
        desk.usage()


def test_a_base_address_may_have_a_path() -> None:
    with serving(page([])) as service:
        desk = Desk(service.url + "/gateway")
        desk.usage()
    assert [call.path for call in desk.calls] == ["/gateway/oauth/token", "/gateway/v2/usage"]


def test_logs_at_debug_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(page([])) as service:
        desk = Desk(service.url)
        desk.usage()
    assert "/v2/usage" in caplog.text
    assert SECRET not in caplog.text + repr(desk)
