"""Chapter 5 of the interface, "Authentication failures", row by row, and HTTPS."""

import time
from collections.abc import Iterator

import httpx
import jwt
import pytest

from tests.interface.calling import Surfaces, assert_problem, claims, until
from tests.interface.routes import READS
from tests.sandbox.merchants import SECRETS
from tests.sandbox.running import Running, started

INVALID = "The token is invalid or missing."
WRONG_ACTOR = [("reseller", "/v2/partners"), ("merchant", "/v2/usage"), ("merchant", "/v2/billing")]
LACKED_SCOPE = ["/v2/usage", "/v2/billing", "/v2/plans", "/v2/organizations"]
LACKED_MAPPING = [("nothing", "/v2/users"), ("profiles", "/v2/users"), ("nothing", "/v2/invoices")]


@pytest.fixture(scope="module", autouse=True)
def aged() -> Iterator[tuple[Running, str]]:
    """A token that lives one second, fetched before the first test of this file."""
    with started("--rate", "0", "--usage", "1", "--token-ttl", "1") as running:
        yield running, running.token()


@pytest.fixture
def gated(whole: Surfaces) -> Iterator[tuple[httpx.Client, str]]:
    """A key and its organization, which stands as before afterwards."""
    with whole.running.client(key=SECRETS["gated"]) as client:
        place = f"/organizations/{client.get('/v2/profile').json()['organizationId']}"
        yield client, place
        whole.running.told("PATCH", place, {"enabled": True, "trial": "active"})


@pytest.mark.parametrize("path", READS)
def test_5_40_missing_credentials_are_401(nobody: httpx.Client, path: str) -> None:
    assert assert_problem(nobody.get(path), 401)["detail"] == INVALID


@pytest.mark.parametrize("path", READS)
def test_5_41_invalid_credentials_are_401(whole: Surfaces, path: str) -> None:
    told = claims(whole.running.token("whole", "s-whole"))
    forged = jwt.encode(told, "k" * 32, "HS256", {"kid": "any"})
    with whole.running.client(forged, "no-such-key") as client:
        assert assert_problem(client.get(path), 401)["detail"] == INVALID


def test_5_43_a_disabled_organization_is_401_and_says_so(
    whole: Surfaces, gated: tuple[httpx.Client, str]
) -> None:
    client, place = gated
    whole.running.told("PATCH", place, {"enabled": False})
    detail = assert_problem(client.get("/v2/invoices"), 401)["detail"]
    assert "API access is not active for this organization" in detail


@pytest.mark.parametrize(("client_id", "path"), WRONG_ACTOR)
def test_5_44_the_wrong_actor_is_403(whole: Surfaces, client_id: str, path: str) -> None:
    with whole.running.client(whole.running.token(client_id, f"s-{client_id}")) as client:
        assert "actor" in assert_problem(client.get(path), 403)["detail"]


@pytest.mark.parametrize("path", LACKED_SCOPE)
def test_5_45_a_missing_scope_is_403(whole: Surfaces, path: str) -> None:
    with whole.running.client(whole.running.token("narrow", "s-narrow")) as client:
        assert "scope" in assert_problem(client.get(path), 403)["detail"]


@pytest.mark.parametrize(("key_id", "path"), LACKED_MAPPING)
def test_5_46_a_missing_mapping_is_403(whole: Surfaces, key_id: str, path: str) -> None:
    with whole.running.client(key=SECRETS[key_id]) as client:
        assert "companyAdmin" in assert_problem(client.get(path), 403)["detail"]


def test_5_47_an_ended_trial_without_billing_is_403_and_says_so(
    whole: Surfaces, gated: tuple[httpx.Client, str]
) -> None:
    client, place = gated
    whole.running.told("PATCH", place, {"trial": "ended", "billing": False})
    detail = assert_problem(client.get("/v2/invoices"), 403)["detail"]
    assert "trial has ended" in detail
    assert "billing is not enabled" in detail


@pytest.mark.parametrize(
    "given", [{"Authorization": "Bearer x"}, {"x-api-key": "wrong"}, {}], ids=str
)
def test_5_48_a_refusal_comes_before_any_look_at_parameters(
    nobody: httpx.Client, given: dict[str, str]
) -> None:
    for path in ("/v2/usage", "/v2/invoices"):
        assert_problem(nobody.get(path, params={"limit": "nonsense"}, headers=given), 401)


def test_5_49_all_calls_use_https(secure: Running) -> None:
    with secure.client(secure.token()) as client:
        assert client.get("/v2/whoami").status_code == 200
        assert client.get("/docs/openapi.json").json()["servers"] == [{"url": secure.url}]
    assert secure.url.startswith("https://")
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(secure.url.replace("https", "http") + "/healthz", trust_env=False)


def test_5_42_expired_credentials_are_401(aged: tuple[Running, str]) -> None:
    running, token = aged
    with running.client(token) as client:
        assert until(lambda: client.get("/v2/whoami").status_code == 401, 1.5)
        assert assert_problem(client.get("/v2/whoami"), 401)["detail"] == INVALID
    assert time.time() >= claims(token)["exp"]
