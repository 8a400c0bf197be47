"""Chapter 1 of the interface, "What the service does": surfaces, base address, media types."""

import httpx
import pytest

from tests.interface.calling import PROBLEM, Surfaces, assert_problem
from tests.interface.routes import (
    MERCHANT_GROUPS,
    PARTNER_GROUPS,
    PARTNER_READS,
    READS,
    SHOWN,
)

FAILURES = {
    400: "/v2/partners?limit=0",
    401: "/v2/whoami",
    403: "/v2/users",
    404: "/v2/nothing",
    405: "/v2/billing",
}


def test_1_1_what_the_document_does_not_show_is_marked_assumed(whole: Surfaces) -> None:
    for path, operations in whole.described()["paths"].items():
        surface = path not in SHOWN and not path.startswith("/docs/")
        marked = [one.get("x-assumed", False) for one in operations.values()]
        assert marked == [surface] * len(operations), path


@pytest.mark.parametrize("path", READS)
def test_1_2_each_route_accepts_exactly_one_method(whole: Surfaces, path: str) -> None:
    other = whole.keyed if path in PARTNER_READS else whole.bearer
    assert whole.get(path).status_code == 200
    assert_problem(other.get(path), 401)
    assert len(whole.operation("get", path)["security"]) == 1


@pytest.mark.parametrize("group", MERCHANT_GROUPS)
def test_1_3_the_merchant_groups_take_an_api_key(
    whole: Surfaces, nobody: httpx.Client, group: str
) -> None:
    path = whole.filled(MERCHANT_GROUPS[group])
    assert whole.keyed.get(path).status_code == 200
    assert_problem(nobody.get(path), 401)
    operation = whole.operation("get", MERCHANT_GROUPS[group])
    assert (operation["tags"], operation["security"]) == ([group], [{"apiKey": []}])


@pytest.mark.parametrize("group", PARTNER_GROUPS)
def test_1_4_the_partner_groups_take_a_bearer_token(
    whole: Surfaces, nobody: httpx.Client, group: str
) -> None:
    path = PARTNER_GROUPS[group]
    assert whole.bearer.get(path).status_code == 200
    assert_problem(nobody.get(path), 401)
    assert [set(one) for one in whole.operation("get", path)["security"]] == [{"bearer"}]


def test_1_5_there_is_one_base_address(whole: Surfaces) -> None:
    assert whole.described()["servers"] == [{"url": whole.running.url}]


@pytest.mark.parametrize("path", READS)
def test_1_6_all_routes_live_under_v2(whole: Surfaces, path: str) -> None:
    bare = path.removeprefix("/v2")
    assert_problem(whole.of(path).get(bare), 404)
    assert bare not in whole.described()["paths"]


@pytest.mark.parametrize("path", [*READS, "/healthz", "/readiness", "/docs/openapi.json"])
def test_1_7_successful_responses_are_json(whole: Surfaces, path: str) -> None:
    answer = whole.get(path)
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json(), dict)


@pytest.mark.parametrize("status", FAILURES)
def test_1_8_failures_are_problems(whole: Surfaces, nobody: httpx.Client, status: int) -> None:
    method = "POST" if status == 405 else "GET"
    with whole.running.client(key="key-of-nothing") as unmapped:
        client = {401: nobody, 403: unmapped}.get(status, whole.bearer)
        answer = client.request(method, FAILURES[status])
    assert assert_problem(answer, status)["status"] == status
    assert answer.headers["content-type"] == PROBLEM


def test_1_9_the_behaviour_of_each_group_is_assumed(whole: Surfaces) -> None:
    groups = {
        tag: one.get("x-assumed", False)
        for path, operations in whole.described()["paths"].items()
        for one in operations.values()
        for tag in one["tags"]
        if tag in MERCHANT_GROUPS and path not in SHOWN
    }
    assert groups == dict.fromkeys(set(MERCHANT_GROUPS) - {"Gateways", "Invoices"}, True)
