"""The interface description of the merchant surface: security, access, bodies, links, examples.

Not here: what both surfaces' descriptions have in common (test_description).
"""

from typing import Any

import httpx
import pytest

from tests.sandbox.merchants import MERCHANT_PATHS
from tests.sandbox.running import API_KEY, Running
from tests.sandbox.schema import faults, resolved

JSON = "application/json"
ADMIN = ["companyAdmin"]
PATHS = ["/v2/gateways", "/v2/invoices", *sorted(MERCHANT_PATHS)]
SCOPES = {
    "gateways:read",
    "invoices:read",
    "customers:read",
    "customer-notes:create",
    "customer-notes:update",
    "customer-notes:delete",
    "payment-methods:read",
    "payment-links:create",
    "payment-method-requests:create",
    "payment-method-requests:read",
    "settings:read",
    "transactions:read",
    "users:read",
    "emails:read",
    "autoprocessing:read",
    "profile:read",
}
PARTNER_LISTS = ["/v2/plans", "/v2/partners", "/v2/organizations", "/v2/usage", "/v2/billing"]
BODIES = {
    "NoteBody": {"text": {"maxLength": 2000}},
    "UnappliedLinkBody": {"expiresInDays": {"minimum": 1, "maximum": 365, "default": 30}},
    "AppliedLinkBody": {"invoiceIds": {"minItems": 1, "maxItems": 20, "uniqueItems": True}},
    "MethodRequestBody": {"expiresInDays": {"minimum": 1, "maximum": 365, "default": 14}},
}


@pytest.fixture(scope="module")
def described(demo: httpx.Client) -> Any:
    return demo.get("/docs/openapi.json").json()


def operations(described: Any) -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path in PATHS
        for method, operation in described["paths"][path].items()
    ]


def test_each_operation_accepts_exactly_one_method_of_authentication(described: Any) -> None:
    assert described["components"]["securitySchemes"]["apiKey"] | {"description": ""} == {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "",
    }
    for path, item in described["paths"].items():
        for operation in item.values():
            expected = "apiKey" if path in PATHS else "bearer"
            assert [list(one) for one in operation["security"]] in ([], [[expected]])
            assert bool(operation["security"]) == path.startswith("/v2/")


def test_every_scope_guards_an_operation_by_its_mappings(described: Any) -> None:
    found = {}
    for _, _, operation in operations(described):
        access = operation["x-access"]
        found[access["scope"].removeprefix("organizations:")] = access["mappings"]
    assert set(found) == SCOPES
    more = {scope: mappings for scope, mappings in found.items() if mappings != ADMIN}
    assert more == {"payment-methods:read": ["companyAdmin", "manageProfiles"]}


def test_statuses_are_those_that_can_happen(described: Any) -> None:
    for path, method, operation in operations(described):
        success = {"post": {"201"}, "delete": {"204"}}.get(method, {"200"})
        expected = success | {"401", "403", "429", "431"}
        names = {one["name"] for one in operation.get("parameters", [])}
        if "limit" in names or "requestBody" in operation:
            expected |= {"400"}
        if "requestBody" in operation:
            expected |= {"413", "415"}
        if path.endswith("/alert") and method == "put":
            expected |= {"201"}
        refers = method == "post" and path.startswith("/v2/payment")
        expected |= {"404"} if "{" in path or refers else set()
        expected |= {"409"} if path.endswith("/applied") else set()
        assert set(operation["responses"]) == expected, (method, path)


@pytest.mark.parametrize("name", BODIES)
def test_bodies_are_described_with_their_bounds_and_closed(described: Any, name: str) -> None:
    schema = described["components"]["schemas"][name]
    assert schema["additionalProperties"] is False
    for field, bounds in BODIES[name].items():
        assert {one: schema["properties"][field][one] for one in bounds} == bounds


def test_pages_link_to_the_next_page(described: Any) -> None:
    pages = 0
    for path in [*PATHS, *PARTNER_LISTS]:
        operation = described["paths"][path].get("get", {"parameters": []})
        if "offset" not in {one["name"] for one in operation.get("parameters", [])}:
            continue
        link = operation["responses"]["200"]["links"]["next"]
        assert link["operationId"] == operation["operationId"]
        assert link["parameters"]["offset"] == "$response.body#/pagination/next_offset"
        pages += 1
    assert pages == 16


def test_links_lead_from_what_is_created_to_getting_it(described: Any) -> None:
    ids = {one["operationId"] for _, _, one in operations(described)}
    for path, method, operation in operations(described):
        if method == "post":
            created = operation["responses"]["201"]
            assert "Location" in created["headers"], path
            assert created["links"]["get"]["operationId"] in ids


def contents(described: Any, operation: Any) -> list[Any]:
    """Give all contents of an operation: what is sent, what is answered."""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    open_ = [resolved(described, body["$ref"]) if "$ref" in body else body for body in bodies]
    return [one for body in open_ for one in body.get("content", {}).values()]


def test_examples_conform_to_their_schemas(described: Any) -> None:
    items = described["paths"].values()
    found = [
        one
        for item in items
        for operation in item.values()
        for one in contents(described, operation)
        if "example" in one
    ]
    assert len(found) > 200
    for one in found:
        assert list(faults(described, one["schema"], one["example"])) == []


def filled(path: str, operation: Any) -> str:
    for one in operation.get("parameters", []):
        path = path.replace(f"{{{one['name']}}}", one.get("example", ""))
    return path


def test_examples_succeed_on_this_very_sandbox(sandbox: Running, described: Any) -> None:
    # Deletions last: what the examples name is there only once.
    with sandbox.client(key=API_KEY) as client:
        for path, method, operation in sorted(
            operations(described), key=lambda one: one[1] == "delete"
        ):
            content = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
            body = content.get("example")
            answer = client.request(method, filled(path, operation), json=body)
            assert str(answer.status_code) in operation["responses"], (method, path)
            assert answer.status_code < 300, (method, path, answer.text)
            shown = operation["responses"][str(answer.status_code)].get("content", {})
            if JSON in shown:
                assert list(faults(described, shown[JSON]["schema"], answer.json())) == []


def test_the_html_shows_who_may_call_and_what_is_sent(demo: httpx.Client) -> None:
    text = demo.get("/docs/").text
    assert "API key whose owner has the mapping <code>companyAdmin</code>" in text
    assert "organizations:payment-links:create" in text
    assert '<a href="#UnappliedLinkBody">UnappliedLinkBody</a>' in text
    assert "Call before shipping." in text
