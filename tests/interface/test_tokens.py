"""Chapter 5 of the interface, "Partner surface: bearer token": its five rules."""

import time
from typing import Any

import httpx
import pytest

from tests.interface.calling import Surfaces, assert_problem, claims
from tests.interface.routes import PARTNER_READS
from tests.sandbox.running import AUDIENCE

FIELDS = ["client_id", "client_secret", "audience", "grant_type"]
WRONG: list[dict[str, Any]] = [
    *({field: None} for field in FIELDS),
    *({field: 7} for field in FIELDS),
    *({field: "wrong"} for field in FIELDS),
]
# Which routes actor and scopes open; the names of scopes, and which route needs which, assumed.
REACHED = {
    "whole": PARTNER_READS,
    "reseller": [path for path in PARTNER_READS if path != "/v2/partners"],
    "merchant": ["/v2/whoami"],
    "narrow": ["/v2/whoami", "/v2/partners"],
}
MATRIX = [(client_id, path) for client_id in REACHED for path in PARTNER_READS]


def asked(whole: Surfaces, **changed: Any) -> httpx.Response:
    return whole.running.token_answer(
        **{"client_id": "whole", "client_secret": "s-whole"} | changed
    )


def test_5_30_a_token_is_got_by_posting_json_to_oauth_token(whole: Surfaces) -> None:
    body = {"client_id": "whole", "client_secret": "s-whole", "audience": AUDIENCE}
    body["grant_type"] = "client_credentials"
    with whole.running.client() as client:
        assert client.post("/oauth/token", json=body).status_code == 200
        assert client.post("/oauth/token", data=body).status_code == 400
        assert client.get("/oauth/token").status_code == 405


@pytest.mark.parametrize("changed", WRONG, ids=str)
def test_5_31_four_texts_are_needed_and_they_must_be_right(
    whole: Surfaces, changed: dict[str, Any]
) -> None:
    answer = asked(whole, **changed)
    assert answer.status_code in (400, 401)
    assert "access_token" not in answer.json()


def test_5_32_the_audience_is_the_api_identifier(whole: Surfaces) -> None:
    assert claims(asked(whole).json()["access_token"])["aud"] == AUDIENCE
    assert asked(whole, audience=AUDIENCE + "/").status_code == 400


@pytest.mark.parametrize("grant_type", ["password", "CLIENT_CREDENTIALS", ""])
def test_5_33_the_grant_type_is_client_credentials(whole: Surfaces, grant_type: str) -> None:
    assert asked(whole).status_code == 200
    assert asked(whole, grant_type=grant_type).status_code == 400


def test_5_34_the_response_is_the_token_response(whole: Surfaces) -> None:
    answer = asked(whole).json()
    assert set(answer) == {"access_token", "token_type", "expires_in"}


def test_5_35_a_token_lives_one_hour_by_default(whole: Surfaces) -> None:
    told = claims(asked(whole).json()["access_token"])
    assert told["exp"] - told["iat"] == 3600
    assert abs(told["iat"] - time.time()) < 5


def test_5_36_a_token_can_be_refreshed_before_the_old_one_expires(whole: Surfaces) -> None:
    old, new = (whole.running.token("whole", "s-whole") for _ in range(2))
    assert old != new
    for token in (old, new, old):
        with whole.running.client(token) as client:
            assert client.get("/v2/whoami").status_code == 200


@pytest.mark.parametrize("path", PARTNER_READS)
def test_5_37_the_token_is_sent_as_authorization_bearer(whole: Surfaces, path: str) -> None:
    token = whole.running.token("whole", "s-whole")
    with whole.running.client() as client:
        right = client.get(path, headers={"Authorization": f"Bearer {token}"})
        assert right.status_code == 200
        for wrong in ({"Authorization": token}, {"x-api-key": token}, {"Authorization": "Bearer"}):
            assert_problem(client.get(path, headers=wrong), 401)
        assert_problem(client.get(path, params={"access_token": token}), 401)


@pytest.mark.parametrize(("client_id", "path"), MATRIX)
def test_5_38_actor_and_scopes_decide_which_routes_are_reachable(
    whole: Surfaces, client_id: str, path: str
) -> None:
    with whole.running.client(whole.running.token(client_id, f"s-{client_id}")) as client:
        status = client.get(path).status_code
    assert status == (200 if path in REACHED[client_id] else 403)


@pytest.mark.parametrize("path", PARTNER_READS)
def test_5_39_which_actors_and_scopes_a_route_needs_is_assumed(whole: Surfaces, path: str) -> None:
    assert whole.operation("get", path)["x-access"]["x-assumed"] is True
