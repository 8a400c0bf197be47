"""The interface description and its HTML: bounds, schemas, security, problems, what is assumed.

Not here: that the routes obey their bounds (test_paging), the problems (test_problem).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.sandbox.merchants import MERCHANT_PATHS
from tests.sandbox.running import Running
from tests.sandbox.schema import faults, resolved

BOUNDS = {
    "/v2/plans": (20, 100),
    "/v2/partners": (20, 100),
    "/v2/organizations": (20, 100),
    "/v2/usage": (100, 500),
    "/v2/billing": (50, 100),
}
SHOWN_PATHS = {
    "/v2/gateways",
    "/v2/invoices",
    "/v2/whoami",
    "/v2/partners",
    "/v2/usage",
    "/v2/billing",
    "/oauth/token",
    "/healthz",
    "/readiness",
    "/docs/",
    "/docs/openapi.json",
}
ASSUMED_PATHS = {"/v2/plans", "/v2/organizations", "/.well-known/jwks.json", *MERCHANT_PATHS}
SHOWN_SCHEMAS = {"Pagination", "Partner", "Token", "Problem", "RateLimitProblem"}
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance"}
SCOPES = {
    "/v2/whoami": [],
    "/v2/plans": ["plans:read"],
    "/v2/partners": ["partners:read"],
    "/v2/organizations": ["organizations:read"],
    "/v2/usage": ["usage:read"],
    "/v2/billing": ["billing:read"],
}


@pytest.fixture(scope="module")
def described(demo: httpx.Client) -> Any:
    answer = demo.get("/docs/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def nodes(thing: Any) -> Iterator[Any]:
    yield thing
    children = thing.values() if isinstance(thing, dict) else thing
    if isinstance(thing, dict | list):
        for child in children:
            yield from nodes(child)


def record_schema(described: Any, path: str) -> Any:
    """Give the schema of a list's records."""
    answer = described["paths"][path]["get"]["responses"]["200"]
    page = resolved(described, answer["content"]["application/json"]["schema"]["$ref"])
    assert set(page["properties"]) == {"data", "pagination"} == set(page["required"])
    assert page["properties"]["pagination"] == {"$ref": "#/components/schemas/Pagination"}
    return page["properties"]["data"]["items"]


def test_it_is_openapi_3_1_of_this_server(sandbox: Running, described: Any) -> None:
    assert described["openapi"].startswith("3.1.")
    assert described["servers"] == [{"url": sandbox.url}]
    assert set(described["paths"]) == SHOWN_PATHS | ASSUMED_PATHS


def test_every_reference_resolves(described: Any) -> None:
    objects = [node for node in nodes(described) if isinstance(node, dict)]
    references = {str(node["$ref"]) for node in objects if "$ref" in node}
    assert len(references) > 20
    for reference in references:
        assert resolved(described, reference)


def test_operation_ids_are_unique(described: Any) -> None:
    ids = [one["operationId"] for item in described["paths"].values() for one in item.values()]
    assert len(set(ids)) == len(ids) == 43


@pytest.mark.parametrize("path", BOUNDS)
def test_bounds_are_described_per_operation(described: Any, path: str) -> None:
    default, most = BOUNDS[path]
    parameters = {one["name"]: one for one in described["paths"][path]["get"]["parameters"]}
    assert set(parameters) == {"limit", "offset"}
    assert all(one["in"] == "query" and not one["required"] for one in parameters.values())
    limit, offset = parameters["limit"]["schema"], parameters["offset"]["schema"]
    assert [limit[name] for name in ("type", "default", "minimum", "maximum")] == [
        "integer",
        default,
        1,
        most,
    ]
    assert (offset["type"], offset["default"], offset["minimum"]) == ("integer", 0, 0)
    assert "maximum" not in offset


@pytest.mark.parametrize("path", SCOPES)
def test_security_and_problems_are_described_per_operation(described: Any, path: str) -> None:
    operation = described["paths"][path]["get"]
    assert operation["security"] == [{"bearer": SCOPES[path]}]
    assert operation["x-access"]["x-assumed"] is True
    expected = {"200", "401", "403", "429", "431"} | ({"400"} if path in BOUNDS else set())
    assert set(operation["responses"]) == expected
    for status in expected - {"200"}:
        answer = resolved(described, operation["responses"][status]["$ref"])
        assert set(answer["content"]) == {"application/problem+json"}
        assert {"X-RateLimit-Limit", "X-RateLimit-Remaining"} < set(answer["headers"])


def test_the_429_is_described_with_its_wait(described: Any) -> None:
    answer = described["components"]["responses"]["429"]
    assert "Retry-After" in answer["headers"]
    problem = described["components"]["schemas"]["RateLimitProblem"]
    assert problem["properties"]["retry_after_seconds"]["type"] == "integer"


def test_assumed_operations_are_marked_and_others_are_not(described: Any) -> None:
    marked = {
        path
        for path, item in described["paths"].items()
        if all(one.get("x-assumed") for one in item.values())
    }
    assert marked == ASSUMED_PATHS
    for path in SHOWN_PATHS:
        assert not any(one.get("x-assumed") for one in described["paths"][path].values())


def test_every_field_that_the_interface_does_not_show_is_marked(described: Any) -> None:
    for name, schema in described["components"]["schemas"].items():
        marked = {field for field, one in schema["properties"].items() if one.get("x-assumed")}
        if name in SHOWN_SCHEMAS or name.startswith(("Page_", "CountedPage_")):
            assert marked == set(), name
        else:
            shown = PROBLEM_MEMBERS if name == "ParameterProblem" else set()
            assert marked == set(schema["properties"]) - shown, name


@pytest.mark.parametrize("path", BOUNDS)
def test_served_records_are_as_described(sandbox: Running, described: Any, path: str) -> None:
    schema = record_schema(described, path)
    records = sandbox.records(path, BOUNDS[path][1])
    assert [fault for record in records for fault in faults(described, schema, record)] == []
    named = resolved(described, schema["$ref"])["properties"]
    absent = {"kind"} if path == "/v2/billing" else set()  # of bills of awkward data
    assert {name for record in records for name in record} == set(named) - absent


def test_whoami_pagination_and_problems_are_as_described(
    demo: httpx.Client, described: Any
) -> None:
    served = {
        "Whoami": demo.get("/v2/whoami").json(),
        "Pagination": demo.get("/v2/usage").json()["pagination"],
        "Problem": demo.get("/nowhere").json(),
        "ParameterProblem": demo.get("/v2/usage?limit=0").json(),
        "TokenRefusal": demo.post("/oauth/token").json(),
        "Health": demo.get("/healthz").json(),
    }
    for name, value in served.items():
        schema = {"$ref": f"#/components/schemas/{name}"}
        assert list(faults(described, schema, value)) == []


@pytest.mark.parametrize(
    "change", [{"name": 7}, {"name": None}, {"partnerId": "X"}, {"more": 1}, {"externalId": ...}]
)
def test_a_record_that_is_not_as_described_would_be_noticed(
    sandbox: Running, described: Any, change: dict[str, Any]
) -> None:
    record = sandbox.records("/v2/partners")[0] | change
    wrong = {name: value for name, value in record.items() if value is not ...}
    assert list(faults(described, record_schema(described, "/v2/partners"), wrong))


def test_the_token_request_is_described(described: Any) -> None:
    operation = described["paths"]["/oauth/token"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    fields = ["client_id", "client_secret", "audience", "grant_type"]
    assert schema["required"] == fields == list(schema["properties"])
    assert schema["additionalProperties"] is False
    assert set(operation["responses"]) == {"200", "400", "401"}


def test_the_html_shows_operations_parameters_and_fields(
    sandbox: Running, demo: httpx.Client, described: Any
) -> None:
    answer = demo.get("/docs/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for path in described["paths"]:
        assert path in answer.text
    for schema in described["components"]["schemas"].values():
        for field in schema["properties"]:
            assert f"<code>{field}</code>" in answer.text
    assert 'href="/docs/openapi.json"' in answer.text
    assert "to 500" in answer.text
    needed = re.findall(r"""(?:src|href|action)="([^"]+)"|url\(([^)]+)""", answer.text)
    assert {one[0] for one in needed if one[0][0] != "#"} == {"/docs/openapi.json"}
    assert not any(one[1] for one in needed)
    assert sandbox.url in answer.text


def test_the_html_has_no_script_and_no_broken_link(demo: httpx.Client) -> None:
    text = demo.get("/docs/").text
    assert "<script" not in text
    anchors = set(re.findall(r'href="#([^"]+)"', text))
    assert anchors <= set(re.findall(r'id="([^"]+)"', text))


def test_the_folder_without_slash_leads_to_the_page(demo: httpx.Client) -> None:
    answer = demo.get("/docs")
    assert answer.status_code == 307
    assert answer.headers["location"] == "/docs/"


@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readiness", "ready")])
def test_health_and_readiness(demo: httpx.Client, path: str, status: str) -> None:
    assert json.loads(demo.get(path).content) == {"status": status}
