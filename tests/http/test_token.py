"""Tokens: asked for as documented, shared, renewed in time, repeated once after a 401."""

import json
from pathlib import Path
from typing import Any

import jwt
import pytest

from pipelines.core import errors
from pipelines.http.client import ServiceClient
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import RateLimiter
from tests.http.support import EPOCH, SECRET, Reply, Script, json_reply, merchant, page_reply


def test_the_body_is_json_of_the_four_members() -> None:
    script = Script(page_reply())
    script.page()
    ((_, request),) = script.token_requests
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers
    client = {"client_id": "demo", "client_secret": SECRET, "audience": "partner-sync-sandbox"}
    assert json.loads(request.content) == client | {"grant_type": "client_credentials"}


# Lifetime, seconds that a request takes, and the age at which the token is renewed.
RENEWALS = [(3600, 0, 3540), (300, 0, 270), (10, 0, 9), (10, 4, 6), (2, 0, 1), ("10", 0, 9)]


@pytest.mark.parametrize(("life", "took", "age"), RENEWALS)
@pytest.mark.parametrize(("later", "tokens"), [(-0.01, 1), (0.01, 2)])
def test_a_token_is_renewed_before_it_expires(
    life: Any, took: float, age: float, later: float, tokens: int
) -> None:
    token = json_reply(access_token="a-token", expires_in=life)
    script = Script(page_reply(seconds=took), tokens=[token])

    async def ask(client: ServiceClient) -> None:
        await script.pages(client)
        await script.clock.sleep(age + later - script.clock.passed)
        await script.pages(client)

    script.run(ask)
    assert len(script.token_requests) == tokens


@pytest.mark.parametrize("lists", [3, 40])  # the last one waits for 0.3 or 4 s
def test_a_token_of_two_seconds_is_never_refused(lists: int) -> None:
    script = Script(page_reply(seconds=0.1), expires_in=2)

    async def ask(client: ServiceClient) -> None:
        for _ in range(5):
            assert await script.pages(client, lists) == [200] * lists

    script.run(ask)
    assert script.attempts == []


@pytest.mark.parametrize("count", [1, 20])
def test_a_401_renews_the_token_once_for_all_and_repeats(count: int) -> None:
    script = Script(page_reply(seconds=0.5), refused=["token-1"])
    assert script.run(lambda client: script.pages(client, count)) == [200] * count
    assert len(script.token_requests) == 2
    assert set(script.statuses) == {401}
    assert len(script.limiter.slots) == count + len(script.attempts)  # none for a token


NOW = int(EPOCH.timestamp())
JWT = {"exp": NOW + 900, "iat": NOW - 100}
# What `expires_in` is in JSON (None: it is missing), claims, and the lifetime that is used.
LIVES = [
    *((each, JWT, 1000) for each in (None, "null", '""', "0", "-1", "[]", "true", "1e400", '"x"')),
    *((each, JWT, 1000) for each in ("99999999999", "9" * 400, '"Infinity"')),
    *((each, {}, 60) for each in (None, "null", '""', "99999999999")),
    *((each, {**JWT, "exp": "soon"}, 60) for each in (None, "null")),
    *(("null", {"exp": exp}, life) for exp, life in ((NOW + 300, 300), (NOW - 5, 60), (0, 60))),
    *((each, JWT, 3599.5) for each in ("3599.5", '"3599.5"', '" 3599.5 "', "35.995e2")),
    *((each, JWT, 120) for each in ("120", '"120"', "120.0")),
]


@pytest.mark.parametrize(("given", "claims", "life"), LIVES)
@pytest.mark.parametrize("status", [200, 201])
def test_a_token_lives_as_told_or_as_it_says_itself_or_a_minute(
    given: str | None, claims: dict[str, Any], life: float, status: int
) -> None:
    token = jwt.encode(claims, "k" * 32)
    member = "" if given is None else f', "expires_in": {given}'
    reply = Reply(status, f'{{"access_token": "{token}"{member}}}'.encode())
    script = Script(page_reply(), tokens=[reply])

    async def ask(client: ServiceClient) -> None:
        await script.pages(client)
        assert client._token is not None
        assert client._token.expires_at == pytest.approx(life, abs=1)

    script.run(ask)


DOUBTS = [
    ("two words", "contains a space or a line break"),
    ("two\nlines", "contains a space or a line break"),
    ('"in-quotes"', "is in quotes, which count as part of it"),
    ("plain-secret", ""),
]


@pytest.mark.parametrize(("secret", "words"), DOUBTS)
def test_a_refused_secret_that_looks_wrong_is_named(
    secret: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_TEST_SECRET", f"{secret}\r\n")
    script = Script(page_reply(), tokens=[Reply(401)])
    with pytest.raises(errors.ServiceError) as got:
        script.page()
    assert ("environment variable HTTP_TEST_SECRET " + words in str(got.value)) == bool(words)
    assert secret not in str(got.value)
    ((_, request),) = script.token_requests
    assert json.loads(request.content)["client_secret"] == secret


def test_a_second_401_is_an_error() -> None:
    script = Script(page_reply(), refused=["token-1", "token-2"])
    with pytest.raises(errors.ServiceError, match="connection `acme` are not accepted") as got:
        script.page()
    assert "client_id, secret and audience" in got.value.remedy
    assert len(script.token_requests) == 2
    assert script.statuses == [401, 401]


def test_a_token_that_expired_on_its_way_was_not_refused() -> None:
    script = Script(*[Reply(401, seconds=12)] * 2, page_reply(), expires_in=10)
    assert script.page().status == 200
    assert script.statuses == [401, 401]


ECHO = json_reply(error="invalid_client", error_description=SECRET).body
WRONG, DENIED = errors.UnexpectedAnswer, errors.ServiceError
REFUSALS = {
    "wrong secret": (Reply(401, ECHO), DENIED, "gave no token (status 401)"),
    "bad request": (Reply(400), WRONG, "gave no token (status 400)"),
    "wrong address": (Reply(404, ECHO), WRONG, "gave no token (status 404)"),
    "redirect": (Reply(302, b"", {"Location": "https://else"}), WRONG, "(status 302)"),
    "no token": (Reply(200, ECHO), WRONG, "gave no token (status 200)"),
    "two lines": (Reply(200, b'{"access_token": "a\\nb"}'), WRONG, "(status 200)"),
    "broken": (
        Reply(200, b"", {"Content-Encoding": "x"}),
        errors.Unavailable,
        "requested. Tried 5",
    ),
    "failure": (Reply(500, ECHO), errors.Unavailable, "(status 500). Tried 5 times."),
}


@pytest.mark.parametrize(("reply", "error", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_token_request(reply: Reply, error: type[Exception], words: str) -> None:
    script = Script(page_reply(), tokens=[reply] * 5)
    with pytest.raises(error) as got:
        script.page()
    assert type(got.value) is error
    assert words in str(got.value)
    assert SECRET not in repr(got.value)
    assert script.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_the_provider_is_not_asked_earlier_than_it_says(status: int, tmp_path: Path) -> None:
    replies = [Reply(status, headers={"Retry-After": pause}) for pause in ("30", "86400")]
    script = Script(page_reply(), tokens=replies)
    metadata = Metadata.open(tmp_path / "metadata.db")
    for _run in range(2):  # the pause is kept
        script.limiter = RateLimiter(metadata, "acme's actor", script.clock)
        with pytest.raises(errors.Postponed, match="connection `acme` ends"):
            script.page()
    (first, _), (second, _) = script.token_requests
    assert second - first >= 30
    metadata.close()


class Pausing(Script):
    """The service asks others for a pause while a token is on its way."""

    def _token(self) -> Reply:
        self.limiter.share_pause([0, 20, 5][len(self.token_requests)])
        return super()._token()


def test_a_pause_that_begins_while_a_token_is_renewed_is_kept() -> None:
    script = Pausing(page_reply(), expires_in=10)
    assert script.page().status == 200
    assert [moment for moment, _ in script.token_requests] == [0, 20]
    assert [moment for moment, _ in script.requests] == [25]


def test_claims_are_read_unverified() -> None:
    claims = {"actor": "partner", "sub": "demo"}
    script = Script(page_reply(), tokens=[json_reply(access_token=jwt.encode(claims, "k" * 32))])

    async def ask(client: ServiceClient) -> None:
        assert client.claims() == {}
        await script.pages(client)
        assert client.claims() == claims

    script.run(ask)


def test_a_key_that_no_header_may_hold_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_TEST_KEY", "two words")
    script = Script(page_reply(), connection=merchant())
    with pytest.raises(errors.ConfigurationError, match="invalid in an HTTP header") as got:
        script.page()
    assert "two words" not in str(got.value)
    assert script.requests == []
