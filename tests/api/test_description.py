"""Interface descriptions: which operations are lists, whose they are, how large pages may be."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api import description
from pipelines.api.description import LARGEST_PAGE, METHODS, Description, Operation
from pipelines.errors import ContractBroken

RECORD = {
    "type": "object",
    "required": ["planId", "name"],
    "properties": {"planId": {"type": "string"}, "name": {"type": "string", "nullable": True}},
}
PAGE = {
    "type": "object",
    "properties": {"data": {"type": "array", "items": RECORD}, "pagination": {"type": "object"}},
}
LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 500}}
OFFSET = {"name": "offset", "in": "query", "schema": {"type": "integer", "minimum": 0}}


def listing(*parameters: Any, schema: Any = PAGE, **more: Any) -> dict[str, Any]:
    """Return an operation that answers with pages."""
    content = {"application/json": {"schema": schema}}
    operation = {"parameters": [*parameters], "responses": {"200": {"content": content}}}
    return operation | more


def written(paths: Any, **more: Any) -> bytes:
    return json.dumps({"openapi": "3.1.0", "info": {"title": "T"}, "paths": paths} | more).encode()


def one(operation: Any, **more: Any) -> Operation:
    """Return an operation as it is read at /v2/plans."""
    found = description.read(written({"/v2/plans": {"get": operation}}, **more))
    return found.operations[0]


def test_a_list_with_its_bounds_fields_and_text() -> None:
    found = one(listing(LIMIT, OFFSET, summary="Plans."))
    assert (found.method, found.path, found.text) == ("GET", "/v2/plans", "Plans.")
    assert (found.largest, found.filters, found.needs) == (500, (), ())
    assert found.item is not None
    assert set(found.item.fields) == found.item.required == {"planId", "name"}
    assert found.item.fields["name"].nullable


COMPONENTS: dict[str, Any] = {
    "schemas": {"Page": PAGE},
    "parameters": {"Limit": LIMIT},
    "responses": {"Page": listing()["responses"]["200"]},
}
ENVELOPE = {"properties": {"total": {"type": "integer"}}}
ARE_LISTS = {
    "described here": listing(),
    "by reference": listing(schema={"$ref": "#/components/schemas/Page"}),
    "an answer by reference": {"responses": {"200": {"$ref": "#/components/responses/Page"}}},
    "an envelope that is extended": listing(schema={"allOf": [PAGE, ENVELOPE]}),
    "any success": {"responses": {"2XX": listing()["responses"]["200"]}},
    "JSON of a kind": {
        "responses": {"200": {"content": {"application/hal+json": {"schema": PAGE}}}}
    },
}
ARE_NONE = {
    "no schema": listing(schema=None),
    "no pagination": listing(schema={"properties": {"data": {"type": "array"}}}),
    "data is no array": listing(schema=PAGE | {"properties": {**PAGE["properties"], "data": {}}}),  # type: ignore[dict-item]
    "no JSON": {"responses": {"200": {"content": {"text/csv": {"schema": PAGE}}}}},
    "only failures": {"responses": {"404": listing()["responses"]["200"]}},
    "no responses": {"responses": []},
    "nothing": {},
}


@pytest.mark.parametrize("operation", ARE_LISTS.values(), ids=list(ARE_LISTS))
def test_lists(operation: Any) -> None:
    found = one(operation, components=COMPONENTS)
    assert found.item is not None
    assert "planId" in found.item.fields


@pytest.mark.parametrize("operation", ARE_NONE.values(), ids=list(ARE_NONE))
def test_what_is_no_list(operation: Any) -> None:
    assert one(operation).item is None


def test_only_get_lists() -> None:
    found = description.read(written({"/v2/plans": {each: listing() for each in METHODS}}))
    assert len(found.operations) == len(METHODS)
    assert [each.method for each in found.lists.values()] == ["GET"]


def limit(**schema: Any) -> dict[str, Any]:
    return LIMIT | {"schema": schema}


# What is said of `limit`, and the largest page that follows.
BOUNDS = [
    ([], None),
    ([limit()], None),
    ([limit(maximum=250)], 250),
    ([limit(maximum=250.0)], 250),
    ([limit(maximum=250, exclusiveMaximum=True)], 249),
    ([limit(exclusiveMaximum=251)], 250),
    ([limit(anyOf=[{"type": "integer", "maximum": 250}, {"type": "null"}])], 250),
    ([limit(maximum=10**9)], LARGEST_PAGE),
    ([limit(maximum=0)], None),
    ([limit(maximum=-5)], None),
    ([limit(maximum="many")], None),
    ([limit(maximum=True)], None),
    ([{"$ref": "#/components/parameters/Limit"}], 500),
    ([{"$ref": "#/nowhere"}, None, [], "limit"], None),
    ([limit(maximum=100), limit(maximum=200)], 200),
]


@pytest.mark.parametrize(("parameters", "largest"), BOUNDS, ids=str)
def test_the_largest_page(parameters: list[Any], largest: int | None) -> None:
    assert one(listing(*parameters), components=COMPONENTS).largest == largest


def test_parameters_of_a_path_are_its_operations_too() -> None:
    status = {"name": "status", "in": "query", "schema": {}}
    region = {"name": "X-Region", "in": "header", "required": True}
    path = {"name": "customerId", "in": "path", "required": True}
    item = {"parameters": [path, limit(maximum=50)], "get": listing(LIMIT, status, region)}
    found = description.read(written({"/v2/customers/{customerId}/notes": item})).operations[0]
    assert found.largest == 500
    assert found.filters == ("status",)
    assert found.needs == ("{customerId}", "header X-Region")


SCHEMES = {
    "token": {"type": "http", "scheme": "Bearer"},
    "oauth": {"type": "oauth2"},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "basic": {"type": "http", "scheme": "basic"},
}
SURFACES: list[tuple[Any, Any, str | None]] = [
    ([{"token": []}], None, "partner"),
    ([{"oauth": ["plans:read"]}], None, "partner"),
    ([{"key": []}], None, "merchant"),
    ([{"basic": []}, {"key": []}], None, "merchant"),
    ([{"basic": []}], None, None),
    ([], [{"key": []}], None),
    (None, [{"key": []}], "merchant"),
    ("none", None, None),
    ([{"unknown": []}, 5], None, None),
]


@pytest.mark.parametrize(("own", "general", "surface"), SURFACES, ids=str)
def test_whose_an_operation_is(own: Any, general: Any, surface: str | None) -> None:
    operation = listing() if own is None else listing(security=own)
    more = {"components": {"securitySchemes": SCHEMES}}
    if general is not None:
        more["security"] = general
    assert one(operation, **more).surface == surface


# The server's address, the path of ours, and where /plans is then.
SERVERS = [
    ([], "/", "/plans"),
    ([{"url": "https://api.example.com"}], "/", "/plans"),
    ([{"url": "https://api.example.com/v2/"}], "/", "/v2/plans"),
    ([{"url": "/v2"}], "", "/v2/plans"),
    ([{"url": "https://api.example.com/gate/v2"}], "/gate/", "/v2/plans"),
    ([{"url": "https://{host}/v2"}], "/", "/plans"),
    ([{"url": "https://[broken"}], "/", "/plans"),
    (["v2"], "/", "/plans"),
]


@pytest.mark.parametrize(("servers", "base", "path"), SERVERS, ids=str)
def test_paths_are_below_the_servers_address(servers: Any, base: str, path: str) -> None:
    body = written({"/plans": {"get": listing()}}, servers=servers)
    assert list(description.read(body, base).lists) == [path]


NONE = {
    "nothing": b"",
    "HTML": b"<html>",
    "YAML": b"openapi: 3.1.0\npaths: {}",
    "cut": written({})[:-1],
    "no text": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "no version": b"{}",
    "Swagger 2": b'{"swagger": "2.0", "paths": {}}',
    "OpenAPI 4": b'{"openapi": "4.0.0", "paths": {}}',
    "a number": b'{"openapi": 3.1}',
}


@pytest.mark.parametrize("body", NONE.values(), ids=list(NONE))
def test_what_is_no_description_is_said(body: bytes) -> None:
    with pytest.raises(ContractBroken, match=r"^no (JSON|OpenAPI 3 document)$"):
        description.read(body)


@pytest.mark.parametrize("paths", [None, [], {}, {"/v2/plans": None}, {"/v2/plans": {"get": 1}}])
def test_a_description_without_operations(paths: Any) -> None:
    assert description.read(written(paths)) == Description("T", "", ())


WORDS = ["get", "parameters", "schema", "responses", "200", "content", "application/json", "$ref"]
WORDS += ["data", "pagination", "properties", "name", "in", "security", "maximum", "type"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["#/paths"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=40,
)


@settings(max_examples=50)
@given(
    st.fixed_dictionaries(
        {"openapi": st.just("3.0.3"), "paths": st.dictionaries(st.just("/v2/x"), JSON)},
        optional={"components": JSON, "security": JSON, "servers": JSON, "info": JSON},
    )
)
def test_any_document_is_read(document: dict[str, Any]) -> None:
    found = description.read(json.dumps(document).encode())
    assert all(each.path.endswith("/v2/x") for each in found.operations)
    assert all(each.largest is None or each.largest > 0 for each in found.operations)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@settings(max_examples=50)
@given(ANY)
def test_any_json_is_a_description_or_is_said_to_be_none(document: Any) -> None:
    with pytest.raises(ContractBroken):
        description.read(json.dumps(document).encode())
    paths = {"openapi": "3.1.0", "paths": document, "components": document, "servers": document}
    assert isinstance(description.read(json.dumps(paths).encode()), Description)
