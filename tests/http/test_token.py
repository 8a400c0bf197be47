"""Tokens: asked for as documented, shared, renewed in time, repeated once after a 401."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import httpx
import jwt
import pytest

from pipelines.core.errors import (
    AccessDenied,
    ConfigurationError,
    Postponed,
    Unavailable,
    UnexpectedAnswer,
)
from pipelines.http.auth import same_origin
from pipelines.http.client import ServiceClient
from sandbox.options import Limits
from tests.http.conftest import Inside, started_inside
from tests.http.support import (
    AUDIENCE,
    KEY_VARIABLE,
    SECRET,
    Desk,
    Reply,
    Script,
    merchant,
    page_reply,
)


async def pages(client: ServiceClient, desk: Desk, count: int) -> list[int | None]:
    """Request pages side by side; return their statuses."""
    asked = [client.page("/v2/usage", 0, 10, desk.attempts.append) for _ in range(count)]
    return [answer.status for answer in await asyncio.gather(*asked)]


def test_the_body_is_json_of_the_four_members() -> None:
    script = Script(page_reply())
    desk = script.desk()
    desk.page()
    ((_, request),) = script.token_requests
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers
    assert json.loads(request.content) == {
        "client_id": "demo",
        "client_secret": SECRET,
        "audience": AUDIENCE,
        "grant_type": "client_credentials",
    }
    assert len(desk.limiter.slots) == 1  # the token request needs none


def test_the_identity_provider_accepts_it(inside: Inside) -> None:
    desk = inside.desk()
    assert desk.run(lambda client: client.whoami())["actor"] == "distributor"
    assert desk.page("/v2/partners", 100).status == 200


def test_one_token_for_all_streams() -> None:
    script = Script(page_reply(seconds=1.0))
    desk = script.desk()
    assert desk.run(lambda client: pages(client, desk, 20)) == [200] * 20
    assert len(script.token_requests) == 1


# Lifetime, seconds that a request takes, and the age at which the token is renewed.
RENEWALS = [(3600, 0, 3540), (300, 0, 270), (10, 0, 9), (10, 4, 6), (2, 0, 1)]


@pytest.mark.parametrize(("life", "took", "age"), RENEWALS)
def test_a_token_is_renewed_before_it_expires(life: int, took: float, age: float) -> None:
    script = Script(page_reply(seconds=took))
    script.expires_in = life
    desk = script.desk()

    async def ask(client: ServiceClient) -> list[int]:
        counts = []
        for moment in (0.0, age - 0.01, age + 0.01):
            await desk.clock.sleep(moment - desk.clock.passed)
            await pages(client, desk, 1)
            counts.append(len(script.token_requests))
        return counts

    assert desk.run(ask) == [1, 1, 2]


# What expires_in and the token itself say, and the age at which the token is renewed.
LIVES: list[tuple[Any, dict[str, Any], float]] = [
    (None, {}, 3540),
    ("600", {}, 540),
    (3600, {"iat": 1000, "exp": 1300}, 270),
    (300, {"iat": 1000, "exp": 4600}, 270),
    (None, {"iat": 1000, "exp": 1300}, 270),
    (300, {"iat": "x", "exp": []}, 270),
    (300, {"iat": 1, "exp": 10**400}, 270),
]


@pytest.mark.parametrize(("expires_in", "claims", "age"), LIVES)
def test_the_shorter_life_counts(expires_in: Any, claims: dict[str, Any], age: float) -> None:
    script = Script(page_reply())
    token = {"access_token": jwt.encode(claims, "k" * 32), "expires_in": expires_in}
    script.token_replies = [Reply(body=json.dumps(token).encode())]
    desk = script.desk()

    async def ask(client: ServiceClient) -> None:
        for moment in (0.0, age - 0.01, age + 0.01):
            await desk.clock.sleep(moment - desk.clock.passed)
            await pages(client, desk, 1)

    desk.run(ask)
    assert [at for at, _ in script.token_requests] == [0.0, age + 0.01]


def test_a_token_of_two_seconds_is_never_refused() -> None:
    inside = started_inside(limits=Limits(rate=0), token_seconds=2)
    desk = inside.desk()

    async def ask(client: ServiceClient) -> None:
        for _ in range(30):
            assert await pages(client, desk, 3) == [200] * 3
            await desk.clock.sleep(0.3)

    desk.run(ask)
    assert desk.attempts == []


@pytest.mark.parametrize("count", [1, 20])
def test_a_refused_token_is_renewed_once_for_all_and_the_requests_repeated(count: int) -> None:
    script = Script(page_reply(seconds=0.5))
    script.refused = {"token-1"}
    desk = script.desk()
    assert desk.run(lambda client: pages(client, desk, count)) == [200] * count
    assert len(script.token_requests) == 2
    assert set(desk.statuses) == {401}
    assert len(desk.limiter.slots) == count + len(desk.attempts)


def test_a_401_before_the_token_expires(inside: Inside) -> None:
    inside.fault("token-refused", path="/v2/usage", times=1)
    desk = inside.desk()
    assert desk.page().status == 200
    assert desk.statuses == [401]


def test_a_second_401_is_an_error() -> None:
    script = Script(page_reply())
    script.refused = {"token-1", "token-2"}
    desk = script.desk()
    with pytest.raises(AccessDenied, match="the token of connection `acme` is not accepted") as got:
        desk.page()
    assert "client_id, secret and audience" in got.value.remedy
    assert len(script.token_requests) == 2
    assert desk.statuses == [401, 401]


def test_a_token_that_expired_on_its_way_was_not_refused() -> None:
    script = Script(Reply(401, seconds=12), Reply(401, seconds=12), page_reply())
    script.expires_in = 10
    desk = script.desk()
    assert desk.page().status == 200
    assert desk.statuses == [401, 401]


def test_at_most_one_token_a_second() -> None:
    script = Script(page_reply())
    script.expires_in = 0
    desk = script.desk()
    desk.run(lambda client: pages(client, desk, 5))
    moments = [at for at, _ in script.token_requests]
    assert len(moments) == 5
    assert min(after - before for before, after in pairwise(moments)) >= 1


def test_a_cancelled_renewal_blocks_nobody() -> None:
    script = Script(page_reply())
    script.token_replies = [Reply(seconds=1.0)] * 50
    desk = script.desk()

    async def ask(client: ServiceClient) -> list[int | None]:
        impatient = asyncio.create_task(pages(client, desk, 1))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        script.token_replies = []
        return await pages(client, desk, 2)

    assert desk.run(ask) == [200, 200]


ECHO = json.dumps({"error": "invalid_client", "error_description": SECRET}).encode()
# The provider's answer, the error, and the words of the message.
REFUSALS = [
    (Reply(401, ECHO), AccessDenied, "gave no token (status 401, invalid_client)"),
    (Reply(400, b""), AccessDenied, "gave no token (status 400)"),
    (Reply(403, b"[" * 100_000), AccessDenied, "gave no token (status 403)"),
    (Reply(401, b'{"error": 7}'), AccessDenied, "gave no token (status 401)"),
    (Reply(404, ECHO), UnexpectedAnswer, "answered, but not with a token"),
    (Reply(302, b"", {"Location": "https://else"}), UnexpectedAnswer, "not with a token"),
    (Reply(200, ECHO), UnexpectedAnswer, "answered, but not with a token"),
    (Reply(200, b'{"access_token": "a\\nb", "expires_in": 9}'), UnexpectedAnswer, "not with a"),
    (
        Reply(200, b'{"access_token": "ab", "expires_in": %d}' % 10**400),
        UnexpectedAnswer,
        "not with",
    ),
    (Reply(500, ECHO), Unavailable, "gave no token (status 500). Tried 5 times."),
    (Reply(200, b"x" * 300_000), Unavailable, "larger than 0.25 MiB"),
]


@pytest.mark.parametrize(("reply", "error", "words"), REFUSALS)
def test_a_refused_token_request(reply: Reply, error: type[Exception], words: str) -> None:
    script = Script(page_reply())
    script.token_replies = [reply] * 5
    with pytest.raises(error) as got:
        script.desk().page()
    assert words in str(got.value)
    assert SECRET not in repr(got.value)
    assert script.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_the_provider_is_not_asked_earlier_than_it_says(status: int) -> None:
    script = Script(page_reply())
    script.token_replies = [Reply(status, headers={"Retry-After": "30"})]
    desk = script.desk()
    desk.run(lambda client: pages(client, desk, 3))
    (first, _), (second, _) = script.token_requests
    assert second - first >= 30


def test_a_provider_that_closes_for_long_ends_the_run() -> None:
    script = Script(page_reply())
    script.token_replies = [Reply(429, headers={"Retry-After": "86400"})]
    desk = script.desk()
    with pytest.raises(Postponed, match="connection `acme` ends"):
        desk.run(lambda client: pages(client, desk, 3))
    assert len(script.token_requests) == 1
    assert desk.clock.passed < 10


def test_claims_are_read_unverified() -> None:
    script = Script(page_reply())
    token = jwt.encode({"actor": "partner", "sub": "demo"}, "k" * 32)
    script.token_replies = [Reply(body=json.dumps({"access_token": token}).encode())]

    async def ask(client: ServiceClient) -> list[dict[str, Any]]:
        before = client.claims()
        await client.page("/v2/usage", 0, 10, print)
        return [before, client.claims()]

    assert script.desk().run(ask) == [{}, {"actor": "partner", "sub": "demo"}]


def test_an_api_key_signs_the_merchant_surface(inside: Inside) -> None:
    desk = inside.merchant_desk()
    assert desk.page("/v2/invoices").status == 200
    assert desk.run(lambda client: asyncio.sleep(0, client.claims())) == {}


def test_a_key_that_no_header_may_hold_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "two words\n")
    script = Script(page_reply())
    with pytest.raises(ConfigurationError, match="no HTTP header may hold") as got:
        script.desk(merchant()).page()
    assert "two words" not in str(got.value)
    assert script.requests == []


ORIGINS = [
    ("https://service/v2/x", True),
    ("https://service:443/v2/x", True),
    ("http://service/v2/x", False),
    ("https://service:8443/v2/x", False),
    ("https://service.example/v2/x", False),
    ("https://service@elsewhere/v2/x", False),
]


@pytest.mark.parametrize(("url", "expected"), ORIGINS)
def test_credentials_go_to_the_service_only(url: str, *, expected: bool) -> None:
    assert same_origin(httpx.URL(url), "https://service/base") is expected
