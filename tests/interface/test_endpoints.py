"""Chapter 4 of the interface, "Endpoints": the table of paths, paging parameters and rules.

Not here: the operations that scopes imply (test_operations).
"""

from itertools import chain
from typing import Any

import httpx
import pytest

from tests.interface.calling import Limited, Surfaces, assert_problem, shown
from tests.interface.routes import EXEMPT, LISTS, bounds

BAD_LIMITS = ["0", "-1", "1.0", "ten", "", "1e1", " 5"]
BAD_OFFSETS = ["-1", "0.5", "none", ""]
JSON = "application/json"


def fields(page: Any) -> set[str]:
    return {field for item in page["data"] for field in item}


def test_4_1_paths_are_relative_to_the_base_address(whole: Surfaces, nobody: httpx.Client) -> None:
    document = whole.described()
    assert all(path.startswith("/") for path in document["paths"])
    address = document["servers"][0]["url"]
    assert nobody.get(f"{address}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("media_type", "status"),
    [(JSON, 201), ("application/json; charset=utf-8", 201), ("text/plain", 415), ("", 415)],
)
def test_4_2_requests_and_responses_are_json(whole: Surfaces, media_type: str, status: int) -> None:
    path = whole.filled("/v2/customers/{customerId}/notes")
    headers = {"Content-Type": media_type}
    answer = whole.keyed.post(path, content=b'{"text": "Hello"}', headers=headers)
    assert answer.status_code == status
    kind = JSON if status == 201 else "application/problem+json"
    assert answer.headers["content-type"] == kind


def test_4_3_gateways_are_a_list_of_the_merchant_surface(whole: Surfaces) -> None:
    assert fields(whole.page("/v2/gateways"))
    page = whole.page("/v2/gateways", limit=1, offset=1)
    assert page["pagination"]["prev_offset"] == 0
    assert_problem(whole.bearer.get("/v2/gateways"), 401)


def test_4_4_invoices_are_a_list_with_a_total(whole: Surfaces) -> None:
    first, second = (whole.page("/v2/invoices", limit=3, offset=offset) for offset in (0, 3))
    assert type(first["total"]) is int
    assert first["total"] == second["total"] > 6
    assert first["data"] != second["data"]
    assert_problem(whole.bearer.get("/v2/invoices"), 401)


def test_4_5_whoami_describes_the_caller(whole: Surfaces) -> None:
    told = whole.page("/v2/whoami")
    assert (told["actor"], told["subject"]) == ("distributor", "whole")
    with whole.running.client(whole.running.token("merchant", "s-merchant")) as client:
        assert client.get("/v2/whoami").json()["actor"] == "organization"
    assert "requestBody" not in whole.operation("get", "/v2/whoami")


def test_4_6_partners_are_a_list_of_partner_items(whole: Surfaces) -> None:
    page = whole.page("/v2/partners", limit=7, offset=14)
    assert fields(page) == {"partnerId", "name", "externalId"}
    assert (page["pagination"]["limit"], page["pagination"]["offset"]) == (7, 14)
    assert_problem(whole.keyed.get("/v2/partners"), 401)


@pytest.mark.parametrize(("limit", "status"), [(500, 200), (501, 400)])
def test_4_7_usage_is_a_list_of_100_by_default_and_500_at_most(
    whole: Surfaces, limit: int, status: int
) -> None:
    assert len(whole.page("/v2/usage", offset=100)["data"]) == 100
    assert whole.get("/v2/usage", limit=limit).status_code == status


@pytest.mark.parametrize(("limit", "status"), [(100, 200), (101, 400)])
def test_4_8_billing_is_a_list_of_50_by_default_and_100_at_most(
    whole: Surfaces, limit: int, status: int
) -> None:
    assert len(whole.page("/v2/billing", offset=50)["data"]) == 50
    assert whole.get("/v2/billing", limit=limit).status_code == status


def unlimited(limited: Limited, path: str) -> httpx.Response:
    """Ask for a path more often than any limit allows; gives the last answer."""
    with limited.stranger() as client:
        answers = [client.get(path) for _ in range(8)]
    assert [shown(answer) for answer in answers] == [(1, 1)] * 8
    assert len({answer.status_code for answer in answers}) == 1
    return answers[-1]


@pytest.mark.parametrize("path", ["/healthz"])
def test_4_9_healthz_answers_everybody_unlimited(slow: Limited, path: str) -> None:
    assert unlimited(slow, path).status_code == 200


@pytest.mark.parametrize("path", ["/readiness"])
def test_4_10_readiness_answers_everybody_unlimited(slow: Limited, path: str) -> None:
    assert unlimited(slow, path).status_code == 200


@pytest.mark.parametrize("path", EXEMPT[2:])
def test_4_11_docs_are_description_and_html_unlimited(slow: Limited, path: str) -> None:
    answer = unlimited(slow, path)
    kinds = {"/docs/": "text/html; charset=utf-8", "/docs/openapi.json": JSON}
    assert answer.status_code == (200 if path in kinds else 404)
    assert answer.headers["content-type"] == kinds.get(path, "application/problem+json")


@pytest.mark.parametrize("path", LISTS)
def test_4_12_limit_is_an_integer_within_its_bounds(whole: Surfaces, path: str) -> None:
    default, most = bounds(path)
    assert whole.page(path)["pagination"]["limit"] == default
    for limit in (1, most):
        assert whole.page(path, limit=limit)["pagination"]["limit"] == limit
    for wrong in (*BAD_LIMITS, str(most + 1)):
        assert "limit" in assert_problem(whole.get(path, limit=wrong), 400)["detail"]


@pytest.mark.parametrize("path", LISTS)
def test_4_13_offset_is_an_integer_of_0_or_greater(whole: Surfaces, path: str) -> None:
    assert whole.page(path, limit=1)["pagination"]["offset"] == 0
    for offset in (0, 1, 1_000_000_000):
        page = whole.page(path, limit=1, offset=offset)
        assert page["pagination"]["offset"] == offset
    for wrong in BAD_OFFSETS:
        assert "offset" in assert_problem(whole.get(path, offset=wrong), 400)["detail"]


@pytest.mark.parametrize("path", LISTS)
def test_4_14_while_there_is_more_next_offset_leads_on(whole: Surfaces, path: str) -> None:
    pages = list(whole.pages(path, bounds(path)[1]))
    together = list(chain.from_iterable(page["data"] for page in pages))
    for page in pages[:-1]:
        told = page["pagination"]
        assert told["has_more"] is True
        assert told["next_offset"] == told["offset"] + len(page["data"])
    assert len({str(item) for item in together}) == len(together)
    offset = max(len(together) - 1, 0)
    assert whole.page(path, limit=1, offset=offset)["data"] == together[-1:]


@pytest.mark.parametrize("path", LISTS)
def test_4_15_the_last_page_has_no_next(whole: Surfaces, path: str) -> None:
    last = list(whole.pages(path, bounds(path)[1]))[-1]["pagination"]
    assert (last["has_more"], last["next_offset"]) == (False, None)


@pytest.mark.parametrize("path", LISTS)
def test_4_16_the_first_page_has_no_previous(whole: Surfaces, path: str) -> None:
    assert whole.page(path)["pagination"]["prev_offset"] is None
    assert whole.page(path, limit=1, offset=1)["pagination"]["prev_offset"] == 0


@pytest.mark.parametrize("path", LISTS)
def test_4_17_an_empty_page_is_the_end_and_no_error(whole: Surfaces, path: str) -> None:
    page = whole.page(path, offset=1_000_000)
    told = page["pagination"]
    assert (page["data"], told["has_more"], told["next_offset"]) == ([], False, None)


@pytest.mark.parametrize("path", ["/v2/usage", "/v2/billing"])
def test_4_18_own_bounds_override_the_general_ones(whole: Surfaces, path: str) -> None:
    default, most = bounds(path)
    assert (default, most) != (20, 100)
    assert len(whole.page(path)["data"]) == default
    assert len(whole.page(path, limit=most)["data"]) == most
    assert_problem(whole.get(path, limit=most + 1), 400)
