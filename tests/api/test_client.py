"""The client over real sockets: what reaches the service, and what the user reads when it fails."""

import gzip
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from pipelines.api.client import Client
from pipelines.clock import SYSTEM
from pipelines.errors import (
    ConfigurationError,
    Unavailable,
)
from pipelines.settings import Settings
from pipelines.streams import STREAMS
from pipelines.streams.usage import USAGE
from tests.api.conftest import SECRET
from tests.api.desk import Desk
from tests.api.service import Reply, page, problem, serving


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
    assert {asked.headers["Cache-Control"] for asked in service.asked} == {"no-cache"}


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


def test_the_age_of_an_answer_is_kept_beside_its_rate_limit() -> None:
    cached = page([])
    with serving(replace(cached, headers=cached.headers | {"AGE": "7"}), page([])) as service:
        pages = [Desk(service.url).usage() for _ in range(2)]
    assert [each.answer.rate_limit for each in pages] == [{"age": "7"}, {}]


def waits(remaining: int, **headers: str) -> list[float]:
    """Return the seconds waited before each of ten pages whose answers say so of the limit."""
    said = {"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": str(remaining)} | headers
    empty = page([])

    async def read(client: Client) -> None:
        for _ in range(10):
            await client.page(USAGE, 0)

    with serving(replace(empty, headers=empty.headers | said)) as service:
        desk = Desk(service.url)
        desk.ask(read)
    return [call.waited for call in desk.calls if call.stream]


SOON, NOW = timedelta(seconds=1), datetime.now(UTC)
RESETS = {
    "milliseconds": f"{(NOW + SOON).timestamp() * 1000:.0f}",
    "microseconds": f"{(NOW + SOON).timestamp() * 1_000_000:.0f}",
    "past": f"{(NOW - 3600 * SOON).timestamp():.0f}",
    "seconds from now": "1",
    "far away": f"{(NOW + timedelta(days=3)).timestamp():.0f}",
    "date": format_datetime(NOW + timedelta(hours=1), usegmt=True),
    "garbage": "soon",
    "empty": "",
}


@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS)
@pytest.mark.parametrize("remaining", [0, 4])
def test_no_reset_stalls_a_sync(reset: str, remaining: int) -> None:
    """At most one window before any request, though the actor looks used up at each."""
    waited = waits(remaining, **{"X-RateLimit-Reset": reset})
    assert max(waited) <= 1.1
    assert sum(waited) <= sum(waits(remaining)) + 1.1


def test_what_passes_is_asked_again_until_it_has_passed() -> None:
    with serving(Reply(502), Reply(200, b"{", length=99), problem(503, "x"), page([{}])) as service:
        desk = Desk(service.url)
        assert desk.usage().rows == 1
    assert len(service.asked) == 4
    assert [call.status for call in desk.calls] == [200, 502, 200, 503, 200]


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
