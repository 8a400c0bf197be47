"""Chapter 3 of the interface, "States and transitions": the access condition of organizations."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.interface.calling import Surfaces, assert_problem
from tests.sandbox.merchants import SECRETS

# Standing, and whether it lets the organization's keys in.
STANDINGS: dict[str, tuple[dict[str, Any], int]] = {
    "disabled": ({"enabled": False}, 401),
    "enabled": ({"enabled": True}, 200),
    "trial ended without billing": ({"trial": "ended", "billing": False}, 403),
    "trial ended, billed": ({"trial": "ended", "billing": True}, 200),
    "trial active": ({"trial": "active"}, 200),
}


@pytest.fixture
def gated(whole: Surfaces) -> Iterator[httpx.Client]:
    """A client of an organization that a test may disable; afterwards it stands as before."""
    with whole.running.client(key=SECRETS["gated"]) as client:
        yield client
        place(whole, {"enabled": True, "trial": "active"})


def place(whole: Surfaces, standing: dict[str, Any]) -> None:
    with whole.running.client(key=SECRETS["support"]) as support:
        organization = support.get("/v2/profile").json()["organizationId"]
    whole.running.told("PATCH", f"/organizations/{organization}", standing)


def test_3_1_states_of_resources_are_assumed(whole: Surfaces) -> None:
    schemas = whole.described()["components"]["schemas"]
    states = [
        schema["properties"]["status"]
        for name, schema in schemas.items()
        if "status" in schema.get("properties", {}) and "Problem" not in name
    ]
    assert len(states) > 5
    assert all(state["x-assumed"] for state in states)


@pytest.mark.parametrize("standing", ["disabled", "enabled"])
def test_3_2_an_organization_is_enabled_or_disabled(
    whole: Surfaces, gated: httpx.Client, standing: str
) -> None:
    change, status = STANDINGS[standing]
    place(whole, change)
    assert gated.get("/v2/gateways").status_code == status


@pytest.mark.parametrize("standing", [one for one in STANDINGS if "trial" in one])
def test_3_3_its_trial_is_active_or_ended(
    whole: Surfaces, gated: httpx.Client, standing: str
) -> None:
    change, status = STANDINGS[standing]
    place(whole, change)
    assert gated.get("/v2/gateways").status_code == status


def test_3_4_these_conditions_gate_merchant_routes_and_no_partner_route(
    whole: Surfaces, gated: httpx.Client
) -> None:
    place(whole, {"enabled": False})
    assert_problem(gated.get("/v2/invoices"), 401)
    assert whole.bearer.get("/v2/organizations").status_code == 200
    assert whole.keyed.get("/v2/invoices").status_code == 200  # another organization


def test_3_5_no_operation_changes_the_standing_of_an_organization(whole: Surfaces) -> None:
    paths = whole.described()["paths"]
    found = {path: list(paths[path]) for path in paths if "organization" in path}
    assert found == {"/v2/organizations": ["get"]}
    assert not [path for path in paths if "sandbox" in path]
