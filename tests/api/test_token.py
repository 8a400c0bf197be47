"""Bearer tokens against an identity provider in virtual time: fetched, shared, renewed, hidden."""

import asyncio
import json
import logging

import httpx
import jwt
import pytest

from pipelines.errors import AccessDenied, ContractBroken, Unavailable
from tests import virtual
from tests.api.provider import HIDDEN, SECRET, VARIABLE, Provider, together
from tests.virtual import seconds


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


def test_the_documented_body_is_sent_and_nothing_else() -> None:
    provider = Provider()

    async def main() -> None:
        await provider.client().get("/")

    virtual.run(main())
    ((_, request),) = provider.asked
    assert (request.method, str(request.url)) == ("POST", "https://login/realm/oauth/token")
    assert request.headers["Content-Type"] == "application/json"
    assert "Authorization" not in request.headers
    assert json.loads(request.content) == {
        "client_id": "me",
        "client_secret": SECRET,
        "audience": "the-api",
        "grant_type": "client_credentials",
    }


def test_the_token_call_has_the_time_limits_of_any_other() -> None:
    provider = Provider()

    async def main() -> None:
        await provider.client().get("/", timeout=httpx.Timeout(30, connect=5))

    virtual.run(main())
    ((_, request),) = provider.asked
    assert request.extensions["timeout"] == {"connect": 5, "read": 30, "write": 30, "pool": 30}


def test_twenty_at_once_share_one_token_call() -> None:
    provider = Provider(took=0.5)

    async def main() -> list[int]:
        return await together(provider.client(), 20)

    assert virtual.run(main()) == [200] * 20
    assert len(provider.asked) == 1
    assert provider.served == ["t1"] * 20


# Lifetime of a token, and the age at which it is renewed: min(60 s, 10 %) before its end, but at
# least a second.
RENEWALS = [(3600, 3540), (600, 540), (599, 539.1), (300, 270), (10, 9), (5, 4)]


@pytest.mark.parametrize(("expires_in", "age"), RENEWALS)
def test_a_token_is_renewed_before_it_expires(expires_in: int, age: float) -> None:
    """Counted from the asking, since the life may begin before the answer is here."""
    provider = Provider(expires_in=expires_in, took=0.25)

    async def main() -> None:
        http = provider.client()
        await http.get("/")
        for moment in (age - 0.01, age + 0.01):
            await asyncio.sleep(1000 + moment - seconds())
            await http.get("/")

    virtual.run(main())
    assert provider.served == ["t1", "t1", "t2"]


LIES = (f'{{"error": "invalid_client", "error_description": "{SECRET}"}}', SECRET, "")
FAILURES = [
    (400, LIES[0], AccessDenied, "no token: 400 invalid_client from login/realm/oauth/token: "),
    (401, LIES[0], AccessDenied, "no token: 401 invalid_client from login/realm/oauth/token: "),
    (403, LIES[1], AccessDenied, "no token: 403 from login/realm/oauth/token: check client id, "),
    (401, LIES[2], AccessDenied, "no token: 401 from login/realm/oauth/token: check client id, "),
    (401, '{"error": 7}', AccessDenied, "no token: 401 from "),
    (401, '{"error": "a\\u001b[31m\\nb"}', AccessDenied, "no token: 401 a [31m b from "),
    (401, "[" * 100_000, AccessDenied, "no token: 401 from "),
    (404, LIES[1], ContractBroken, "no token: 404 from login/realm/oauth/token; set auth_url"),
    (302, LIES[1], ContractBroken, "no token: 302 from login/realm/oauth/token; set auth_url"),
    (408, LIES[1], Unavailable, "no token: 408 from login/realm/oauth/token"),
    (429, LIES[1], Unavailable, "no token: 429 from login/realm/oauth/token"),
    (500, LIES[1], Unavailable, "no token: 500 from login/realm/oauth/token"),
    (503, LIES[1], Unavailable, "no token: 503 from login/realm/oauth/token"),
    (200, LIES[1], ContractBroken, "login/realm/oauth/token answered, but not with a token"),
    (200, "[" * 100_000, ContractBroken, "answered, but not with a token"),
    (200, "", ContractBroken, "answered, but not with a token"),
    (200, '{"access_token": "t"}', ContractBroken, "answered, but not with a token"),
    (200, '{"access_token": "", "expires_in": 1}', ContractBroken, "but not with a token"),
    (200, '{"access_token": null, "expires_in": 1}', ContractBroken, "but not with a token"),
    (200, '{"access_token": "t", "expires_in": "1"}', ContractBroken, "but not with a token"),
    (200, '{"access_token": "t\\nq", "expires_in": 1}', ContractBroken, "but not with a token"),
    (200, '{"access_token": "t\\u00e9", "expires_in": 1}', ContractBroken, "but not with a token"),
    (200, '{"access_token": "\\ud800", "expires_in": 1}', ContractBroken, "but not with a token"),
]


@pytest.mark.parametrize(("status", "body", "error", "words"), FAILURES)
def test_a_refusal_says_what_to_check_and_never_quotes_the_body(
    status: int, body: str, error: type[Exception], words: str
) -> None:
    provider = Provider(answer=lambda: httpx.Response(status, content=body.encode()))

    async def main() -> None:
        await provider.client().get("/")

    with pytest.raises(error) as caught:
        virtual.run(main())
    assert words in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert provider.served == []


@pytest.mark.parametrize(("status", "seconds_asked"), [(429, 7), (503, 30)])
def test_the_provider_is_not_asked_earlier_than_it_says(status: int, seconds_asked: int) -> None:
    headers = {"Retry-After": str(seconds_asked)}
    provider = Provider(answer=lambda: httpx.Response(status, headers=headers))

    async def main() -> list[int]:
        http = provider.client()
        with pytest.raises(Unavailable):
            await http.get("/")
        provider.answer = None
        return await together(http, 3)

    assert virtual.run(main()) == [200] * 3
    (first, _), (second, _) = provider.asked
    assert second - first >= seconds_asked - 1e-6


def test_a_failed_or_cancelled_token_call_blocks_nobody() -> None:
    provider = Provider(took=10)

    async def main() -> list[int]:
        http = provider.client()
        impatient = asyncio.create_task(together(http, 1))
        await asyncio.sleep(1)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        provider.took = 0
        return await together(http, 2)

    assert virtual.run(main()) == [200, 200]


def test_the_secret_and_the_token_appear_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    provider = Provider(refused={"t1"})

    async def main() -> httpx.AsyncClient:
        http = provider.client()
        await http.get("/")
        return http

    http = virtual.run(main())
    token = provider.token.token
    assert token is not None
    assert token.value == "t2"
    shown = [repr(each) for each in (provider.token, token, http, *provider.calls)]
    shown += [repr(HIDDEN), caplog.text, repr(vars(provider.token))]
    assert SECRET not in "".join(shown)
    assert "t2" not in "".join(shown)


def test_a_token_tells_its_claims_unverified() -> None:
    value = jwt.encode({"actor": "distributor", "sub": "me"}, "k" * 32)
    answer = {"access_token": value, "expires_in": 60}
    provider = Provider(answer=lambda: httpx.Response(200, json=answer))

    async def main() -> dict[str, object]:
        await provider.client().get("/")
        assert provider.token.token is not None
        return provider.token.token.claims()

    assert virtual.run(main()) == {"actor": "distributor", "sub": "me"}


def test_a_token_that_is_no_jwt_tells_nothing() -> None:
    provider = Provider()

    async def main() -> dict[str, object]:
        await provider.client().get("/")
        assert provider.token.token is not None
        return provider.token.token.claims()

    assert virtual.run(main()) == {}
