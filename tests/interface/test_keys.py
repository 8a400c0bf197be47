"""Chapter 5 of the interface, "Merchant surface: API key": its five rules and its table."""

from collections.abc import Iterator

import httpx
import pytest

from tests.interface.calling import Surfaces, assert_problem
from tests.sandbox.merchants import SECRETS

NO_KEYS = ["", "wrong", "key-of-the-admi", "KEY-OF-THE-ADMIN", "Bearer key-of-the-admin"]
ADMIN, PROFILES = "companyAdmin", "manageProfiles"
ID = "0" * 24
NOTES = f"/v2/customers/{ID}/notes"
REQUESTS = "/v2/payment-method-requests"
# The table, row by row: the mappings that suffice, and the operations that the scope guards.
SCOPES = {
    "gateways:read": ({ADMIN}, ["GET /v2/gateways"]),
    "invoices:read": ({ADMIN}, ["GET /v2/invoices"]),
    "customers:read": ({ADMIN}, ["GET /v2/customers"]),
    "customer-notes:create": ({ADMIN}, [f"POST {NOTES}", f"POST {NOTES}/{ID}/replies"]),
    "customer-notes:update": (
        {ADMIN},
        [f"PATCH {NOTES}/{ID}", f"PUT {NOTES}/{ID}/status", f"PUT /v2/customers/{ID}/alert"],
    ),
    "customer-notes:delete": (
        {ADMIN},
        [
            f"DELETE {NOTES}/{ID}",
            f"DELETE {NOTES}/{ID}/replies/{ID}",
            f"DELETE /v2/customers/{ID}/alert",
        ],
    ),
    "payment-methods:read": ({ADMIN, PROFILES}, ["GET /v2/payment-methods"]),
    "payment-links:create": (
        {ADMIN},
        ["POST /v2/payment-links/unapplied", "POST /v2/payment-links/applied"],
    ),
    "payment-method-requests:create": ({ADMIN}, [f"POST {REQUESTS}"]),
    "payment-method-requests:read": ({ADMIN}, [f"GET {REQUESTS}", f"GET {REQUESTS}/{ID}"]),
    "settings:read": ({ADMIN}, ["GET /v2/settings"]),
    "transactions:read": ({ADMIN}, ["GET /v2/transactions"]),
    "users:read": ({ADMIN}, ["GET /v2/users"]),
    "emails:read": ({ADMIN}, ["GET /v2/emails"]),
    "autoprocessing:read": ({ADMIN}, ["GET /v2/autoprocessing/forecast"]),
    "profile:read": ({ADMIN}, ["GET /v2/profile"]),
}
ROWS = [
    pytest.param(scope, *row, id=f"5.{number}-{scope}")
    for number, (scope, row) in enumerate(SCOPES.items(), 14)
]
REACHED = {200, 201, 204, 400, 404, 415}  # past every permission


@pytest.fixture
def berta(whole: Surfaces) -> Iterator[httpx.Client]:
    """A client whose login's mappings a test may change; afterwards they are as before."""
    with whole.running.client(key=SECRETS["other"]) as client:
        yield client
        whole.running.told("PUT", "/logins/berta", {"mappings": [ADMIN]})


@pytest.fixture
def gated(whole: Surfaces) -> Iterator[tuple[httpx.Client, httpx.Client, str]]:
    """A key, a support key, and their organization, which stands as before afterwards."""
    with (
        whole.running.client(key=SECRETS["gated"]) as client,
        whole.running.client(key=SECRETS["support"]) as support,
    ):
        place = f"/organizations/{support.get('/v2/profile').json()['organizationId']}"
        yield client, support, place
        whole.running.told("PATCH", place, {"enabled": True, "trial": "active"})


def test_5_1_the_key_is_sent_in_x_api_key(whole: Surfaces) -> None:
    with whole.running.client() as client:
        right = client.get("/v2/gateways", headers={"x-api-key": SECRETS["admin"]})
        elsewhere = {"Authorization": SECRETS["admin"], "api-key": SECRETS["admin"]}
        wrong = client.get("/v2/gateways", headers=elsewhere)
        query = client.get("/v2/gateways", params={"x-api-key": SECRETS["admin"]})
    assert right.status_code == 200
    assert_problem(wrong, 401)
    assert_problem(query, 401)


def test_5_2_a_key_is_scoped_to_one_organization(whole: Surfaces) -> None:
    with whole.running.client(key=SECRETS["other"]) as other:
        ours, theirs = (one.get("/v2/profile").json() for one in (whole.keyed, other))
        customer = whole.page("/v2/customers")["data"][0]["customerId"]
        assert ours["organizationId"] != theirs["organizationId"]
        assert whole.keyed.get(f"/v2/customers/{customer}").status_code == 200
        assert_problem(other.get(f"/v2/customers/{customer}"), 404)


def test_5_3_no_route_of_the_interface_issues_a_key(whole: Surfaces) -> None:
    paths = whole.described()["paths"]
    assert not [path for path in paths if "key" in path.lower() and "jwks" not in path]


@pytest.mark.parametrize("key", NO_KEYS)
def test_5_4_the_service_validates_the_key(whole: Surfaces, key: str) -> None:
    with whole.running.client() as client:
        assert_problem(client.get("/v2/gateways", headers={"x-api-key": key}), 401)


def test_5_5_the_acting_identity_is_the_owning_login(whole: Surfaces) -> None:
    authors = []
    for key_id in ("admin", "second"):
        with whole.running.client(key=SECRETS[key_id]) as client:
            path = whole.filled("/v2/customers/{customerId}/notes")
            authors.append(client.post(path, json={"text": key_id}).json()["author"])
    assert authors == ["anna", "anna"]


def test_5_6_the_key_carries_the_mappings_of_its_login(whole: Surfaces) -> None:
    for key_id, status in (("admin", 200), ("second", 200), ("profiles", 403), ("nothing", 403)):
        with whole.running.client(key=SECRETS[key_id]) as client:
            assert client.get("/v2/users").status_code == status


def test_5_7_permissions_are_evaluated_at_request_time(
    whole: Surfaces, berta: httpx.Client
) -> None:
    for mappings, status in (([], 403), ([PROFILES], 403), ([ADMIN], 200), ([], 403)):
        whole.running.told("PUT", "/logins/berta", {"mappings": mappings})
        assert berta.get("/v2/users").status_code == status


def test_5_8_revoking_a_key_takes_effect_immediately(whole: Surfaces) -> None:
    with whole.running.client(key=SECRETS["revocable"]) as client:
        assert client.get("/v2/profile").status_code == 200
        whole.running.told("POST", "/keys/revocable/revoke")
        assert_problem(client.get("/v2/profile"), 401)


def test_5_9_the_organization_must_be_enabled(
    whole: Surfaces, gated: tuple[httpx.Client, httpx.Client, str]
) -> None:
    client, _, place = gated
    for enabled, status in ((True, 200), (False, 401), (True, 200)):
        whole.running.told("PATCH", place, {"enabled": enabled})
        assert client.get("/v2/invoices").status_code == status


def test_5_10_and_not_blocked_by_an_ended_trial_without_billing(
    whole: Surfaces, gated: tuple[httpx.Client, httpx.Client, str]
) -> None:
    client, _, place = gated
    for billing, status in ((False, 403), (True, 200)):
        whole.running.told("PATCH", place, {"trial": "ended", "billing": billing})
        assert client.get("/v2/invoices").status_code == status


def test_5_11_the_conditions_hold_for_every_organization_scoped_route(
    whole: Surfaces, gated: tuple[httpx.Client, httpx.Client, str]
) -> None:
    client, _, place = gated
    whole.running.told("PATCH", place, {"enabled": False})
    for _, operations in SCOPES.values():
        for operation in operations:
            assert_problem(client.request(*operation.split()), 401)


@pytest.mark.parametrize("change", [{"enabled": False}, {"trial": "ended", "billing": False}])
def test_5_12_internal_support_keys_skip_both(
    whole: Surfaces, gated: tuple[httpx.Client, httpx.Client, str], change: dict[str, object]
) -> None:
    client, support, place = gated
    whole.running.told("PATCH", place, change)
    assert client.get("/v2/invoices").status_code in (401, 403)
    assert support.get("/v2/invoices").status_code == 200


def test_5_13_the_table_has_16_scopes_and_no_other_guards_anything(whole: Surfaces) -> None:
    found = {
        one["x-access"]["scope"]
        for operations in whole.described()["paths"].values()
        for one in operations.values()
        if one.get("security") == [{"apiKey": []}]
    }
    assert found == {f"organizations:{scope}" for scope in SCOPES}
    assert len(found) == 16


@pytest.mark.parametrize(("scope", "suffice", "operations"), ROWS)
def test_5_scope_needs_its_mapping(
    whole: Surfaces, scope: str, suffice: set[str], operations: list[str]
) -> None:
    for key_id, mapping in (("admin", ADMIN), ("profiles", PROFILES), ("nothing", None)):
        with whole.running.client(key=SECRETS[key_id]) as client:
            answers = [client.request(*operation.split()) for operation in operations]
        for answer in answers:
            if mapping in suffice:
                assert answer.status_code in REACHED
            else:
                assert f"organizations:{scope}" in assert_problem(answer, 403)["detail"]
