"""The identity provider: token response, claims, key set, refusals ("bearer token", rules 1, 2).

Not here: what a token opens (test_authentication).
"""

import socket
import time
from typing import Any

import httpx
import jwt
import pytest

from tests.sandbox.running import AUDIENCE, Running, started

REFUSALS: list[tuple[dict[str, Any], int, str]] = [
    ({"client_secret": "wrong"}, 401, "invalid_client"),
    ({"client_id": "nobody"}, 401, "invalid_client"),
    ({"client_secret": ""}, 401, "invalid_client"),
    ({"audience": "another"}, 400, "invalid_target"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"client_id": None}, 400, "invalid_request"),
    ({"client_secret": None}, 400, "invalid_request"),
    ({"audience": None}, 400, "invalid_request"),
    ({"grant_type": None}, 400, "invalid_request"),
    ({"scope": "usage:read"}, 400, "invalid_request"),
    ({"client_id": 7}, 400, "invalid_request"),
    ({"audience": [AUDIENCE]}, 400, "invalid_request"),
]
BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"[" * 60_000,
    b'{"client_id": "\xff"}',
    b'{"client_id": "\\ud800", "client_secret": "", "audience": "", "grant_type": ""}',
    b" " * 100_000,
]
MEDIA_TYPES = ["application/x-www-form-urlencoded", "text/plain", "application/jsonp", ""]


def assert_oauth_error(answer: httpx.Response, status: int, error: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.json()["error"] == error


def test_the_token_response(sandbox: Running) -> None:
    answer = sandbox.token_answer()
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json()) == {"access_token", "token_type", "expires_in"}
    assert answer.json()["token_type"] == "Bearer"
    assert answer.json()["expires_in"] == 3600


def test_the_claims_verify_against_the_key_set(sandbox: Running) -> None:
    token = sandbox.token()
    with sandbox.client() as client:
        keys = client.get("/.well-known/jwks.json").json()["keys"]
    header = jwt.get_unverified_header(token)
    assert header["alg"] == "RS256"
    published = {key["kid"]: jwt.PyJWK(key) for key in keys}
    claims = jwt.decode(
        token, published[header["kid"]], ["RS256"], audience=AUDIENCE, issuer=sandbox.url
    )
    assert claims["actor"] == "distributor"
    assert claims["sub"] == "demo"
    assert claims["exp"] - claims["iat"] == 3600
    assert abs(claims["iat"] - time.time()) < 5
    wanted = "plans:read partners:read organizations:read usage:read billing:read"
    assert claims["scope"] == wanted


def test_the_key_set_holds_public_members_only(sandbox: Running) -> None:
    with sandbox.client() as client:
        keys = client.get("/.well-known/jwks.json").json()["keys"]
    assert [set(key) for key in keys] == [{"kty", "use", "alg", "kid", "n", "e"}]


@pytest.mark.parametrize(("changed", "status", "error"), REFUSALS)
def test_refusals(sandbox: Running, changed: dict[str, Any], status: int, error: str) -> None:
    assert_oauth_error(sandbox.token_answer(**changed), status, error)


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_no_token_request(sandbox: Running, body: bytes) -> None:
    with sandbox.client() as client:
        answer = client.post(
            "/oauth/token", content=body, headers={"Content-Type": "application/json"}
        )
    assert_oauth_error(answer, 400, "invalid_request")


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_a_body_that_is_not_json(sandbox: Running, media_type: str) -> None:
    with sandbox.client() as client:
        answer = client.post("/oauth/token", content=b"{}", headers={"Content-Type": media_type})
    assert_oauth_error(answer, 400, "invalid_request")


def test_a_body_that_breaks_off_does_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    head = b"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with started("--usage", "1") as running:
        url = httpx.URL(running.url)
        with socket.create_connection((url.host, url.port or 80)) as connection:
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert running.token()
    assert capfd.readouterr().err == ""


def test_refusals_never_repeat_the_secret(sandbox: Running) -> None:
    answer = sandbox.token_answer(client_secret="swordfish", extra=1)
    assert "swordfish" not in answer.text


def test_a_lifetime_by_option_and_its_end() -> None:
    with started("--token-ttl", "1", "--rate", "0", "--usage", "1") as running:
        answer = running.token_answer().json()
        assert answer["expires_in"] == 1
        with running.client(answer["access_token"]) as client:
            assert client.get("/v2/whoami").status_code == 200
            time.sleep(1.05)
            assert client.get("/v2/whoami").status_code == 401


def test_tokens_know_nothing_of_the_time_of_the_data() -> None:
    with started("--now", "2027-06-01", "--usage", "1") as running:
        claims = jwt.decode(running.token(), options={"verify_signature": False})
        assert abs(claims["iat"] - time.time()) < 5


def test_the_identity_provider_has_no_rate_limit() -> None:
    with started("--usage", "1") as running, running.client() as client:
        answers = [client.post("/oauth/token") for _ in range(8)]
        answers += [client.get("/.well-known/jwks.json") for _ in range(8)]
    assert not any(answer.status_code == 429 for answer in answers)
    assert not any("ratelimit" in name for answer in answers for name in answer.headers)


def test_the_token_route_is_limited_per_ip_where_asked_for() -> None:
    with started("--limit-idp", "--usage", "1", "--window", "60") as running:
        first, second = running.token_answer(), running.token_answer()
        with running.client(first.json()["access_token"]) as client:
            third = client.post("/oauth/token")
            assert client.get("/v2/whoami").headers["x-ratelimit-limit"] == "5"
        with running.client() as client:
            described = client.get("/docs/openapi.json").json()["paths"]["/oauth/token"]["post"]
    assert "429" in described["responses"]
    assert (first.status_code, second.status_code, third.status_code) == (200, 429, 429)
    assert first.headers["x-ratelimit-limit"] == "1"
    assert second.headers["content-type"] == "application/problem+json"
