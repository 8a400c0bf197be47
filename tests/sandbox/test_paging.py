"""Pagination: the envelope, its bounds and its five rules ("Pagination parameters").

Not here: the records on the pages (test_data).
"""

import httpx
import pytest

from tests.sandbox.running import Running

# path, default limit, maximum limit, records in the fixture
LISTS = [
    ("/v2/plans", 20, 100, 15),
    ("/v2/partners", 20, 100, 25),
    ("/v2/organizations", 20, 100, 75),
    ("/v2/usage", 100, 500, 1500),
    ("/v2/billing", 50, 100, 150),
]
NO_INTEGERS = ["x", "", "1.0", " 1", "1 ", "1_0", "0x1", "1e1", "true", "\uff11", "--1", "+1"]
MEMBERS = {"limit", "offset", "has_more", "next_offset", "prev_offset"}


@pytest.mark.parametrize(("path", "default", "most", "count"), LISTS)
def test_the_first_page_with_defaults(
    demo: httpx.Client, path: str, default: int, most: int, count: int
) -> None:
    page = demo.get(path).json()
    assert set(page) == {"data", "pagination"}
    assert set(page["pagination"]) == MEMBERS
    assert len(page["data"]) == min(default, count)
    assert page["pagination"]["limit"] == default <= most
    assert page["pagination"]["offset"] == 0
    assert page["pagination"]["prev_offset"] is None  # rule 3
    assert page["pagination"]["has_more"] is (count > default)


@pytest.mark.parametrize(("path", "default", "most", "count"), LISTS)
def test_bounds_are_those_of_the_endpoint(
    demo: httpx.Client, path: str, default: int, most: int, count: int
) -> None:
    page = demo.get(path, params={"limit": most}).json()
    assert len(page["data"]) == min(most, count)
    assert page["pagination"]["limit"] == most >= default
    for limit in (most + 1, 0, -1):
        assert_refused(demo.get(path, params={"limit": limit}), "limit")
    assert_refused(demo.get(path, params={"offset": -1}), "offset")


@pytest.mark.parametrize("field", ["limit", "offset"])
@pytest.mark.parametrize("text", NO_INTEGERS)
def test_what_is_no_integer_is_refused(demo: httpx.Client, field: str, text: str) -> None:
    assert_refused(demo.get("/v2/usage", params={field: text}), field)


def assert_refused(answer: httpx.Response, field: str) -> None:
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in answer.json()["detail"]
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_refusal_names_every_wrong_field(demo: httpx.Client) -> None:
    answer = demo.get("/v2/billing", params={"limit": 101, "offset": "x"}).json()
    assert [error["field"] for error in answer["errors"]] == ["limit", "offset"]


@pytest.mark.parametrize("limit", [1, 7, 25, 100])
def test_a_walk_keeps_the_rules_and_sees_everything_once(demo: httpx.Client, limit: int) -> None:
    whole = [record["partnerId"] for record in demo.get("/v2/partners?limit=100").json()["data"]]
    seen: list[str] = []
    offset, expected_previous = 0, None
    while True:
        page = demo.get("/v2/partners", params={"limit": limit, "offset": offset}).json()
        seen += [record["partnerId"] for record in page["data"]]
        pagination = page["pagination"]
        assert pagination["limit"] == limit
        assert pagination["offset"] == offset
        assert pagination["prev_offset"] == expected_previous
        if not pagination["has_more"]:
            assert pagination["next_offset"] is None  # rule 2
            break
        assert pagination["next_offset"] == offset + len(page["data"]) == offset + limit  # rule 1
        expected_previous, offset = offset, pagination["next_offset"]
    assert seen == whole
    assert len(set(seen)) == 25


@pytest.mark.parametrize(("path", "default", "most", "count"), LISTS)
def test_the_next_offset_leads_through_the_whole_list(
    sandbox: Running, path: str, default: int, most: int, count: int
) -> None:
    assert len(sandbox.records(path)) == len(sandbox.records(path, most)) == count
    assert default <= most


@pytest.mark.parametrize("offset", [25, 26, 1000, 10**18, 10**30])
def test_beyond_the_end_is_an_empty_page_and_no_error(demo: httpx.Client, offset: int) -> None:
    answer = demo.get("/v2/partners", params={"offset": offset})
    assert answer.status_code == 200  # rule 4
    assert answer.json()["data"] == []
    assert answer.json()["pagination"] == {
        "limit": 20,
        "offset": offset,
        "has_more": False,
        "next_offset": None,
        "prev_offset": offset - 20,
    }


def test_the_previous_page_never_begins_before_the_first(demo: httpx.Client) -> None:
    page = demo.get("/v2/partners", params={"limit": 10, "offset": 3}).json()
    assert page["pagination"]["prev_offset"] == 0


def test_a_page_that_ends_with_the_list_is_the_last(demo: httpx.Client) -> None:
    pagination = demo.get("/v2/partners", params={"limit": 5, "offset": 20}).json()["pagination"]
    assert (pagination["has_more"], pagination["next_offset"]) == (False, None)


def test_pages_are_json(demo: httpx.Client) -> None:
    assert demo.get("/v2/usage").headers["content-type"] == "application/json"
