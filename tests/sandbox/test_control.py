"""The control routes: what they take and refuse, and that they are no part of the service.

Not here: what faults and changes do (test_faults, test_changes).
"""

from typing import Any

import httpx
import pytest

from sandbox.faults.catalogue import CATALOGUE
from tests.sandbox.running import API_KEY, Running, started

REFUSED: list[tuple[str, str, Any, str]] = [
    ("POST", "/faults", {}, "name"),
    ("POST", "/faults", {"name": "no-such"}, "no-such"),
    ("POST", "/faults", {"name": "error-500", "path": "v2"}, "path"),
    ("POST", "/faults", {"name": "error-500", "every": 0}, "every"),
    ("POST", "/faults", {"name": "error-500", "every": "2"}, "every"),
    ("POST", "/faults", {"name": "error-500", "after": -1}, "after"),
    ("POST", "/faults", {"name": "error-500", "times": 0}, "times"),
    ("POST", "/faults", {"name": "error-500", "often": 3}, "often"),
    ("POST", "/faults", {"name": "error-500", "value": 3}, "value"),
    ("POST", "/faults", {"name": "error-503", "value": "soon"}, "value"),
    ("POST", "/faults", {"name": "redirect", "value": 3}, "value"),
    ("POST", "/faults", [], ""),
    ("POST", "/changes", {"list": "invoices"}, "list"),
    ("POST", "/changes", {"list": "usage", "insert": -1}, "insert"),
    ("POST", "/changes", {"list": "usage", "where": "middle"}, "where"),
    ("POST", "/changes", {"list": "usage", "order": "random"}, "order"),
    ("POST", "/changes", {"list": "usage", "insrt": 1}, "insrt"),
    ("POST", "/changes", {"list": "plans", "insert": 1}, "plans cannot grow"),
    ("POST", "/scans", {"list": "nothing"}, "list"),
    ("POST", "/scans", None, ""),
    ("PUT", "/logins/demo", {"mappings": "companyAdmin"}, "mappings"),
    ("PATCH", "/organizations/x", {"trial": "over"}, "trial"),
    ("PATCH", "/organizations/x", {"billing": True}, "billing"),
]
UNKNOWN: list[tuple[str, str, Any]] = [
    ("DELETE", "/faults/9999", None),
    ("POST", "/scans/9999/end", None),
    ("GET", "/organizations/nobody", None),
    ("PATCH", "/organizations/nobody", {"enabled": False}),
    ("POST", "/keys/nobody/revoke", None),
    ("GET", "/logins/nobody", None),
    ("PUT", "/logins/nobody", {"mappings": []}),
    ("GET", "/nothing", None),
]


@pytest.mark.parametrize(("method", "path", "body", "named"), REFUSED)
def test_a_body_that_makes_no_sense_is_a_400_that_says_why(
    sandbox: Running, method: str, path: str, body: Any, named: str
) -> None:
    answer = sandbox.control(method, path, body)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]
    assert sandbox.told("GET", "/faults")["faults"] == []


@pytest.mark.parametrize(("method", "path", "body"), UNKNOWN)
def test_what_is_not_there_is_a_404(sandbox: Running, method: str, path: str, body: Any) -> None:
    assert sandbox.control(method, path, body).status_code == 404


def test_faults_are_listed_removed_and_cleared(sandbox: Running) -> None:
    first = sandbox.fault("error-500", "/v2/usage", every=2, after=1, times=3)
    second = sandbox.fault("stall", value=5)
    told = sandbox.told("GET", "/faults")
    assert [one["name"] for one in told["catalogue"]] == list(CATALOGUE)
    assert [one["id"] for one in told["faults"]] == [first, second]
    assert told["faults"][0] == {
        "id": first,
        "name": "error-500",
        "path": "/v2/usage",
        "every": 2,
        "after": 1,
        "times": 3,
        "value": None,
        "seen": 0,
        "befallen": 0,
    }
    sandbox.told("DELETE", f"/faults/{first}")
    assert [one["id"] for one in sandbox.told("GET", "/faults")["faults"]] == [second]
    sandbox.told("DELETE", "/faults")
    assert sandbox.told("GET", "/faults")["faults"] == []


def test_control_is_no_part_of_the_interface(sandbox: Running) -> None:
    sandbox.fault("error-500", "/*")  # not even of what can go wrong
    answer = sandbox.control("GET", "/faults")
    assert answer.status_code == 200
    assert not any(name.startswith("x-ratelimit") for name in answer.headers)
    counted = sandbox.told("GET", "/statistics")["requests"]
    assert not any("sandbox" in path for path in counted)
    sandbox.told("DELETE", "/statistics")
    assert sandbox.told("GET", "/statistics")["requests"] == {}


def test_without_control_its_routes_are_a_404_of_the_service() -> None:
    with (
        started("--no-control", "--window", "3600", "--usage", "1") as running,
        running.client(running.token()) as client,
    ):
        answers = [client.get(f"/__sandbox__/{path}") for path in ("statistics", "faults", "")]
        refused = client.post("/__sandbox__/reset")
    assert [answer.status_code for answer in (*answers, refused)] == 4 * [404]
    assert answers[2].headers["x-ratelimit-remaining"] == "2"
    assert answers[0].headers["content-type"] == "application/problem+json"


def test_options_switch_on_what_the_routes_would() -> None:
    faults = ("--fault=error-500:/v2/usage:3", "--fault=late", "--order=newest-first")
    with started("--usage", "1", "--fault", "html-502:/v2/plans", *faults) as running:
        told = running.told("GET", "/faults")["faults"]
        running.fault("drop")
        running.reset()
        assert running.told("GET", "/faults")["faults"][0]["path"] == "/v2/plans"
        orders = {one["order"] for one in running.told("GET", "/changes").values()}
    assert [(one["name"], one["path"], one["every"], one["value"]) for one in told] == [
        ("html-502", "/v2/plans", 1, None),
        ("error-500", "/v2/usage", 3, None),
        ("late", "/v2/*", 1, 1.0),
    ]
    assert orders == {"stable", "newest-first"}


@pytest.fixture(scope="module")
def office() -> Any:
    """A sandbox whose organization, key and login this module changes."""
    with started("--rate", "0", "--partners", "5", "--usage", "10", "--billing", "5") as running:
        yield running


def gateways(running: Running) -> httpx.Response:
    with running.client(key=API_KEY) as client:
        return client.get("/v2/gateways")


STANDINGS = [
    ({"enabled": False}, 401, "not active for this organization"),
    ({"enabled": True}, 200, ""),
    ({"trial": "active"}, 200, ""),
    ({"trial": "ended"}, 403, "trial has ended and billing is not enabled"),
    ({"trial": "ended", "billing": True}, 200, ""),
]


def test_standing_keys_and_logins_change_at_once(office: Running) -> None:
    key = office.told("GET", "/keys")[0]
    for body, status, text in STANDINGS:
        office.told("PATCH", f"/organizations/{key['organization']}", body)
        answer = gateways(office)
        assert answer.status_code == status, body
        assert text in answer.text
    assert office.told("GET", f"/organizations/{key['organization']}")["trial"] == "ended"
    login = f"/logins/{key['login']}"
    assert office.told("GET", login)["mappings"] == ["companyAdmin"]
    office.told("PUT", login, {"mappings": ["manageProfiles"]})
    assert gateways(office).status_code == 403
    office.told("PUT", login, {"mappings": ["companyAdmin"]})
    assert gateways(office).status_code == 200
    office.told("POST", f"/keys/{key['id']}/revoke")
    assert gateways(office).status_code == 401
    assert office.told("GET", "/keys")[0]["revoked"] is True
