"""Who may reach what by API key: 401 and 403 of the merchant surface ("API key", rules 1 to 5).

Not here: what the routes answer (test_merchant_reads, test_merchant_writes).
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.merchants import SECRETS, assert_problem, key_client, keys_file
from tests.sandbox.running import Running, started

ID = "0" * 24
NOTE = f"/v2/customers/{ID}/notes/{ID}"
READ, CREATE, UPDATE, DELETE = "GET", "POST", "PUT", "DELETE"
# "API key", the table: scope, what it guards here, and whether manageProfiles suffices.
GUARDED = [
    ("gateways:read", [(READ, "/v2/gateways")], False),
    ("invoices:read", [(READ, "/v2/invoices")], False),
    ("customers:read", [(READ, "/v2/customers"), (READ, f"/v2/customers/{ID}")], False),
    (
        "customer-notes:create",
        [(CREATE, f"/v2/customers/{ID}/notes"), (CREATE, f"{NOTE}/replies")],
        False,
    ),
    (
        "customer-notes:update",
        [("PATCH", NOTE), (UPDATE, f"{NOTE}/status"), (UPDATE, f"/v2/customers/{ID}/alert")],
        False,
    ),
    (
        "customer-notes:delete",
        [(DELETE, NOTE), (DELETE, f"{NOTE}/replies/{ID}"), (DELETE, f"/v2/customers/{ID}/alert")],
        False,
    ),
    ("payment-methods:read", [(READ, "/v2/payment-methods")], True),
    (
        "payment-links:create",
        [(CREATE, "/v2/payment-links/unapplied"), (CREATE, "/v2/payment-links/applied")],
        False,
    ),
    ("payment-method-requests:create", [(CREATE, "/v2/payment-method-requests")], False),
    (
        "payment-method-requests:read",
        [(READ, "/v2/payment-method-requests"), (READ, f"/v2/payment-method-requests/{ID}")],
        False,
    ),
    ("settings:read", [(READ, "/v2/settings")], False),
    ("transactions:read", [(READ, "/v2/transactions")], False),
    ("users:read", [(READ, "/v2/users")], False),
    ("emails:read", [(READ, "/v2/emails")], False),
    ("autoprocessing:read", [(READ, "/v2/autoprocessing/forecast")], False),
    ("profile:read", [(READ, "/v2/profile")], False),
]
ROUTES = [(f"organizations:{one}", *route, more) for one, all_, more in GUARDED for route in all_]
PARTNER_PATHS = ["/v2/whoami", "/v2/plans", "/v2/partners", "/v2/usage", "/v2/billing"]
INVALID_KEYS = ["", "x", "key-of-the-admi", "KEY-OF-THE-ADMIN", "é" * 20]


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    file = keys_file(tmp_path_factory.mktemp("clients"))
    with started("--rate", "0", "--usage", "30", "--clients", file) as running:
        yield running


@pytest.mark.parametrize(("scope", "method", "path", "profiles_suffice"), ROUTES)
def test_the_owner_needs_the_mapping_of_the_scope(
    keyed: Running, scope: str, method: str, path: str, *, profiles_suffice: bool
) -> None:
    for key_id, suffices in (("admin", True), ("profiles", profiles_suffice), ("nothing", False)):
        with key_client(keyed, key_id) as client:
            answer = client.request(method, path)
        if suffices:
            assert answer.status_code in (200, 404, 415)  # past every permission
        else:
            assert scope in assert_problem(answer, 403)["detail"]


@pytest.mark.parametrize(("method", "path"), [route[1:3] for route in ROUTES])
def test_a_merchant_route_takes_an_api_key_and_nothing_else(
    keyed: Running, method: str, path: str
) -> None:
    with keyed.client(keyed.token("whole", "s-whole")) as bearer, keyed.client() as nobody:
        for client in (bearer, nobody):
            answer = client.request(method, path, params={"limit": "nonsense"})
            assert assert_problem(answer, 401)["detail"] == "The token is invalid or missing."
            assert answer.headers["www-authenticate"] == "ApiKey"


@pytest.mark.parametrize("path", PARTNER_PATHS)
def test_a_partner_route_takes_no_api_key(keyed: Running, path: str) -> None:
    with key_client(keyed, "admin") as client:
        answer = client.get(path)
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/v2/gateways", "/v2/partners"])
def test_of_two_valid_credentials_the_ones_of_the_route_count(keyed: Running, path: str) -> None:
    with keyed.client(keyed.token("whole", "s-whole"), SECRETS["admin"]) as client:
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("key", INVALID_KEYS)
def test_an_invalid_key_is_401(keyed: Running, key: str) -> None:
    with keyed.client() as client:
        headers = {b"x-api-key": key.encode()}
        assert_problem(client.get("/v2/gateways", headers=headers), 401)


def test_two_keys_in_one_request_are_401(keyed: Running) -> None:
    with keyed.client() as client:
        twice = [("x-api-key", SECRETS["admin"])] * 2
        assert_problem(client.get("/v2/gateways", headers=twice), 401)


def test_the_name_of_the_header_is_case_insensitive(keyed: Running) -> None:
    with keyed.client() as client:
        headers = {"X-API-Key": SECRETS["admin"]}
        assert client.get("/v2/gateways", headers=headers).status_code == 200


def test_mappings_are_read_with_every_request(keyed: Running) -> None:
    with key_client(keyed, "other") as client:
        assert client.get("/v2/users").status_code == 200
        keyed.told("PUT", "/logins/berta", {"mappings": ["manageProfiles", "another"]})
        assert_problem(client.get("/v2/users"), 403)
        assert client.get("/v2/payment-methods").status_code == 200
        keyed.told("PUT", "/logins/berta", {"mappings": ["companyAdmin"]})
        assert client.get("/v2/users").status_code == 200


def test_revoking_a_key_takes_effect_at_once(keyed: Running) -> None:
    with key_client(keyed, "revocable") as client:
        assert client.get("/v2/profile").status_code == 200
        keyed.told("POST", "/keys/revocable/revoke")
        assert_problem(client.get("/v2/profile"), 401)


def gate(running: Running, **standing: Any) -> tuple[httpx.Response, httpx.Response]:
    """Change the gated organization; gives what its key and its support key are answered."""
    with key_client(running, "gated") as client, key_client(running, "support") as support:
        organization = support.get("/v2/profile").json()["organizationId"]
        running.told("PATCH", f"/organizations/{organization}", standing)
        return client.get("/v2/gateways"), support.get("/v2/gateways")


def test_a_disabled_organization_is_401_and_support_skips_that(keyed: Running) -> None:
    for enabled in (False, True):
        answer, support = gate(keyed, enabled=enabled)
        assert support.status_code == 200
    assert answer.status_code == 200
    answer, _ = gate(keyed, enabled=False)
    detail = assert_problem(answer, 401)["detail"]
    assert detail == "API access is not active for this organization."
    gate(keyed, enabled=True)


def test_a_trial_that_ended_without_billing_is_403_and_support_skips_that(keyed: Running) -> None:
    answer, support = gate(keyed, trial="ended", billing=False)
    detail = assert_problem(answer, 403)["detail"]
    assert detail == "The free trial has ended and billing is not enabled."
    assert support.status_code == 200
    for standing in ({"trial": "ended", "billing": True}, {"trial": "active"}):
        assert gate(keyed, **standing)[0].status_code == 200


def test_disabled_comes_before_mapping_before_trial(keyed: Running) -> None:
    gate(keyed, enabled=False, trial="ended", billing=False)
    keyed.told("PUT", "/logins/gerda", {"mappings": []})
    with key_client(keyed, "gated") as client:
        assert_problem(client.get("/v2/gateways"), 401)
        gate(keyed, enabled=True)
        assert "mapping" in assert_problem(client.get("/v2/gateways"), 403)["detail"]
        keyed.told("PUT", "/logins/gerda", {"mappings": ["companyAdmin"]})
        assert "trial" in assert_problem(client.get("/v2/gateways"), 403)["detail"]
    gate(keyed, trial="active")


def test_an_organization_in_its_trial_is_let_in(keyed: Running) -> None:
    with key_client(keyed, "trying") as client:
        assert client.get("/v2/profile").status_code == 200


def test_keys_of_one_organization_share_its_limit_and_others_do_not(tmp_path: Path) -> None:
    with started("--window", "3600", "--usage", "1", "--clients", keys_file(tmp_path)) as running:
        statuses = []
        for key_id in ("admin", "second", "profiles", "admin", "second", "nothing", "other"):
            with key_client(running, key_id) as client:
                answer = client.get("/v2/payment-methods")
                statuses.append(answer.status_code)
                assert answer.headers["x-ratelimit-limit"] == "5"
        with running.client(key="no-such-key-at-all") as stranger:
            refused = stranger.get("/v2/payment-methods")
            assert (refused.status_code, refused.headers["x-ratelimit-limit"]) == (401, "1")
            assert stranger.get("/v2/payment-methods").status_code == 429
        with key_client(running, "admin") as client:
            organization = next(iter(running.statistics()["callers"]))
            assert client.get("/healthz").headers["x-ratelimit-remaining"] == "0"
    assert statuses == [200, 200, 200, 200, 200, 429, 200]
    assert organization.startswith("organization:")


def test_revoked_keys_and_mappings_outlive_a_restart_and_no_key_is_kept(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    options = ("--rate", "0", "--usage", "1", "--clients", keys_file(tmp_path))
    with started(*options, "--store", str(store)) as running:
        running.told("POST", "/keys/admin/revoke")
        running.told("PUT", "/logins/otto", {"mappings": []})
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("store.sqlite*"))
    assert hashlib.sha256(SECRETS["other"].encode()).digest() in kept
    assert not [secret for secret in SECRETS.values() if secret.encode() in kept]
    with started(*options, "--store", str(store)) as running:
        expected = {"admin": 401, "second": 200, "profiles": 403}
        for key_id, status in expected.items():
            with key_client(running, key_id) as client:
                assert client.get("/v2/payment-methods").status_code == status


def test_no_key_is_ever_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with started("--usage", "1", "--clients", keys_file(tmp_path)) as running:
        with key_client(running, "admin") as client:
            client.get("/v2/gateways")
            client.get("/v2/gateways", params={"limit": 0})
            control = str(running.told("GET", "/keys")) + str(running.statistics())
        line = running.line
    printed = line + control + "".join(capfd.readouterr())
    assert not [secret for secret in SECRETS.values() if secret in printed]
