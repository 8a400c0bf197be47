"""Who may reach what: 401 and 403 of the partner surface ("Authentication failures").

Not here: how a token is fetched (test_token), the limits that come before (test_limits).
"""

import base64
import json
import time
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.sandbox.running import AUDIENCE, Running

LISTS = ["/v2/plans", "/v2/partners", "/v2/organizations", "/v2/usage", "/v2/billing"]
REACHED = {
    "whole": ["/v2/whoami", *LISTS],
    "reseller": ["/v2/whoami", "/v2/plans", "/v2/organizations", "/v2/usage", "/v2/billing"],
    "merchant": ["/v2/whoami"],
    "narrow": ["/v2/whoami", "/v2/partners"],
}
REASONS = {
    ("reseller", "/v2/partners"): "actor partner",
    ("merchant", "/v2/usage"): "actor organization",
    ("narrow", "/v2/usage"): "scope usage:read",
}
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
INVALID_HEADERS = [
    "",
    "Bearer",
    "Bearer x",
    "Bearer a.b.c",
    "Bearer ....",
    "Basic ZGVtbzpkZW1v",
    "Token abc",
    f"Bearer {base64.urlsafe_b64encode(b'[' * 9000).decode()}.e30.e30",
    f"Bearer {base64.urlsafe_b64encode(bytes(range(128, 200))).decode()}.e30.e30",
]


def assert_problem(answer: httpx.Response, status: int, slug: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"].endswith(f"/problems/{slug}")


@pytest.mark.parametrize("path", ["/v2/whoami", *LISTS])
@pytest.mark.parametrize("client_id", REACHED)
def test_actor_and_scopes_decide_which_routes_are_reachable(
    staffed: Running, client_id: str, path: str
) -> None:
    with staffed.client(staffed.token(client_id, f"s-{client_id}")) as client:
        answer = client.get(path)
    if path in REACHED[client_id]:
        assert answer.status_code == 200
    else:
        assert_problem(answer, 403, "forbidden")


@pytest.mark.parametrize(("client_id", "path"), REASONS)
def test_a_403_says_what_is_wrong(staffed: Running, client_id: str, path: str) -> None:
    with staffed.client(staffed.token(client_id, f"s-{client_id}")) as client:
        assert REASONS[client_id, path] in client.get(path).json()["detail"]


@pytest.mark.parametrize("path", ["/v2/whoami", *LISTS])
def test_without_a_token_every_route_is_401(sandbox: Running, path: str) -> None:
    with sandbox.client() as client:
        answer = client.get(path, params={"limit": "nonsense"})
    assert_problem(answer, 401, "unauthorized")
    assert answer.json()["detail"] == "The token is invalid or missing."
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", INVALID_HEADERS)
def test_an_invalid_header_is_401(sandbox: Running, header: str) -> None:
    with sandbox.client() as client:
        answer = client.get("/v2/whoami", headers={"Authorization": header})
    assert_problem(answer, 401, "unauthorized")


def test_two_authorization_headers_are_401(sandbox: Running) -> None:
    token = sandbox.token()
    with sandbox.client() as client:
        twice = [("Authorization", f"Bearer {token}")] * 2
        assert_problem(client.get("/v2/whoami", headers=twice), 401, "unauthorized")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_case_insensitive(sandbox: Running, scheme: str) -> None:
    with sandbox.client() as client:
        headers = {"Authorization": f"{scheme} {sandbox.token()}"}
        assert client.get("/v2/whoami", headers=headers).status_code == 200


def forged(right: dict[str, Any], key_id: str, kind: str) -> str:
    now = int(time.time())
    if kind == "another key":
        return jwt.encode(right, OTHER_KEY, "RS256", {"kid": key_id})
    if kind == "no algorithm":
        return jwt.encode(right, "", "none", {"kid": key_id})
    if kind == "shared secret":
        return jwt.encode(right, "k" * 32, "HS256", {"kid": key_id})
    return jwt.encode(right | {"exp": now - 1}, OTHER_KEY, "RS256")


@pytest.mark.parametrize("kind", ["another key", "no algorithm", "shared secret", "no kid"])
def test_a_forged_token_is_401(sandbox: Running, kind: str) -> None:
    token = sandbox.token()
    claims = jwt.decode(token, options={"verify_signature": False})
    key_id = jwt.get_unverified_header(token)["kid"]
    with sandbox.client(forged(claims, key_id, kind)) as client:
        assert_problem(client.get("/v2/whoami"), 401, "unauthorized")


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_token_changed_in_any_part_is_401(sandbox: Running, part: int) -> None:
    parts = sandbox.token().split(".")
    middle = len(parts[part]) // 2
    swapped = "A" if parts[part][middle] != "A" else "B"
    parts[part] = parts[part][:middle] + swapped + parts[part][middle + 1 :]
    with sandbox.client(".".join(parts)) as client:
        assert_problem(client.get("/v2/whoami"), 401, "unauthorized")


def test_the_token_of_another_sandbox_is_401(sandbox: Running, staffed: Running) -> None:
    with sandbox.client(staffed.token("whole", "s-whole")) as client:
        assert_problem(client.get("/v2/whoami"), 401, "unauthorized")


def test_an_api_key_opens_no_partner_route(sandbox: Running) -> None:
    with sandbox.client() as client:
        answer = client.get("/v2/partners", headers={"x-api-key": "anything"})
    assert_problem(answer, 401, "unauthorized")


def test_whoami_describes_the_caller_the_same_for_every_token(staffed: Running) -> None:
    answers = []
    for _ in range(2):
        with staffed.client(staffed.token("narrow", "s-narrow")) as client:
            answers.append(json.loads(client.get("/v2/whoami").content))
    expected = {"actor": "distributor", "subject": "narrow", "audience": AUDIENCE}
    assert answers == 2 * [expected | {"scopes": ["partners:read"]}]
