"""Tokens: asked for as documented, shared, renewed in time, repeated once after a 401."""

import json
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
from pipelines.http.client import ServiceClient
from tests.http.support import (
    AUDIENCE,
    KEY_VARIABLE,
    SECRET,
    Harness,
    Reply,
    Script,
    merchant,
    page_reply,
    partner,
)


def test_the_body_is_json_of_the_four_members(sandbox_app: httpx.ASGITransport) -> None:
    script = Script(page_reply())
    harness = script.harness()
    harness.page()
    ((_, request),) = script.token_requests
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers
    assert json.loads(request.content) == {
        "client_id": "demo",
        "client_secret": SECRET,
        "audience": AUDIENCE,
        "grant_type": "client_credentials",
    }
    assert len(harness.limiter.slots) == 1  # the token request needs none
    assert Harness(partner(), sandbox_app).page().status == 200


# Lifetime, seconds that a request takes, and the age at which the token is renewed.
RENEWALS = [(3600, 0, 3540), (300, 0, 270), (10, 0, 9), (10, 4, 6), (2, 0, 1), ("10", 0, 9)]


@pytest.mark.parametrize(("life", "took", "age"), RENEWALS)
def test_a_token_is_renewed_before_it_expires(life: Any, took: float, age: float) -> None:
    script = Script(page_reply(seconds=took))
    body = {"access_token": "a-token", "expires_in": life}
    script.token_replies = [Reply(body=json.dumps(body).encode())]
    harness = script.harness()

    async def ask(client: ServiceClient) -> list[int]:
        counts = []
        for moment in (0.0, age - 0.01, age + 0.01):
            await harness.clock.sleep(moment - harness.clock.passed)
            await harness.pages(client)
            counts.append(len(script.token_requests))
        return counts

    assert harness.run(ask) == [1, 1, 2]


def test_a_token_of_two_seconds_is_never_refused() -> None:
    script = Script(page_reply(seconds=0.1))
    script.expires_in = 2
    harness = script.harness()

    async def ask(client: ServiceClient) -> None:
        for _ in range(30):
            assert await harness.pages(client, 3) == [200] * 3

    harness.run(ask)
    assert harness.attempts == []


@pytest.mark.parametrize("count", [1, 20])
def test_a_401_renews_the_token_once_for_all_and_repeats(count: int) -> None:
    script = Script(page_reply(seconds=0.5))
    script.refused = {"token-1"}
    harness = script.harness()
    assert harness.run(lambda client: harness.pages(client, count)) == [200] * count
    assert len(script.token_requests) == 2
    assert set(harness.statuses) == {401}
    assert len(harness.limiter.slots) == count + len(harness.attempts)


def test_a_second_401_is_an_error() -> None:
    script = Script(page_reply())
    script.refused = {"token-1", "token-2"}
    harness = script.harness()
    with pytest.raises(AccessDenied, match="credentials of connection `acme` are not acc") as got:
        harness.page()
    assert "client_id, secret and audience" in got.value.remedy
    assert len(script.token_requests) == 2
    assert harness.statuses == [401, 401]


def test_a_token_that_expired_on_its_way_was_not_refused() -> None:
    script = Script(Reply(401, seconds=12), Reply(401, seconds=12), page_reply())
    script.expires_in = 10
    harness = script.harness()
    assert harness.page().status == 200
    assert harness.statuses == [401, 401]


ECHO = json.dumps({"error": "invalid_client", "error_description": SECRET}).encode()
ENDLESS = b'{"access_token": "ab", "expires_in": %d}' % 10**400
REFUSALS = {
    "wrong secret": (Reply(401, ECHO), AccessDenied, "gave no token (status 401)"),
    "bad request": (Reply(400), AccessDenied, "gave no token (status 400)"),
    "wrong address": (Reply(404, ECHO), UnexpectedAnswer, "gave no token (status 404)"),
    "redirect": (Reply(302, b"", {"Location": "https://else"}), UnexpectedAnswer, "(status 302)"),
    "no token": (Reply(200, ECHO), UnexpectedAnswer, "gave no token (status 200)"),
    "two lines": (Reply(200, b'{"access_token": "a\\nb"}'), UnexpectedAnswer, "(status 200)"),
    "endless life": (Reply(200, ENDLESS), UnexpectedAnswer, "gave no token (status 200)"),
    "failure": (Reply(500, ECHO), Unavailable, "gave no token (status 500). Tried 5 times."),
}


@pytest.mark.parametrize(("reply", "error", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_token_request(reply: Reply, error: type[Exception], words: str) -> None:
    script = Script(page_reply())
    script.token_replies = [reply] * 5
    with pytest.raises(error) as got:
        script.harness().page()
    assert words in str(got.value)
    assert SECRET not in repr(got.value)
    assert script.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_the_provider_is_not_asked_earlier_than_it_says(status: int) -> None:
    script = Script(page_reply())
    script.token_replies = [
        Reply(status, headers={"Retry-After": asked}) for asked in ("30", "86400")
    ]
    harness = script.harness()
    with pytest.raises(Postponed, match="connection `acme` ends"):
        harness.page()
    (first, _), (second, _) = script.token_requests
    assert second - first >= 30


def test_claims_are_read_unverified() -> None:
    script = Script(page_reply())
    token = jwt.encode({"actor": "partner", "sub": "demo"}, "k" * 32)
    script.token_replies = [Reply(body=json.dumps({"access_token": token}).encode())]
    harness = script.harness()

    async def ask(client: ServiceClient) -> list[dict[str, Any]]:
        before = client.claims()
        await harness.pages(client)
        return [before, client.claims()]

    assert harness.run(ask) == [{}, {"actor": "partner", "sub": "demo"}]


def test_a_key_that_no_header_may_hold_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "two words\n")
    script = Script(page_reply())
    with pytest.raises(ConfigurationError, match="no HTTP header may hold") as got:
        script.harness(merchant()).page()
    assert "two words" not in str(got.value)
    assert script.requests == []
