"""Schemas of both OpenAPI versions: types, nulls, what is required; and no way to hang."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api.fields import ANYTHING, NODES, Document, Schema

COMPONENTS = {
    "Name": {"type": "string", "description": "What it is called."},
    "Money": {
        "type": "object",
        "properties": {"amount": {"type": "string"}},
        "required": ["amount"],
    },
    "Loop": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Loop"}}},
    "Self": {"$ref": "#/components/schemas/Self"},
    "a/b": {"type": "boolean"},
}


def schema(node: Any) -> Schema:
    return Document({"components": {"schemas": COMPONENTS}}).schema(node)


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


# A schema, its type in words, whether null is allowed.
TYPES = [
    ({"type": "string"}, "string", False),
    ({"type": "string", "nullable": True}, "string", True),
    ({"type": ["string", "null"]}, "string", True),
    ({"type": "string", "format": "date-time"}, "string (date-time)", False),
    ({"type": ["integer", "string"]}, "integer or string", False),
    ({"type": "array", "items": {"type": "integer"}}, "array of integer", False),
    ({"items": {}}, "array of anything", False),
    ({"properties": {}}, "object", False),
    ({"enum": ["a", 1, None]}, "integer or string", True),
    ({"const": True}, "boolean", False),
    ({"type": "null"}, "null", True),
    ({}, "anything", True),
    (True, "anything", True),
    (None, "anything", True),
    ({"type": 5, "enum": "x", "properties": [], "required": 1}, "anything", True),
    (reference("Name"), "string", False),
    (reference("a~1b"), "boolean", False),
    (reference("nowhere"), "anything", True),
    ({"$ref": "https://elsewhere.example/x.json"}, "anything", True),
    (reference("Self"), "anything", True),
    ({"allOf": [reference("Name")], "nullable": True}, "string", True),
    ({"allOf": [reference("Money"), {"properties": {"tax": {}}}]}, "object", False),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": "string"}]}, "string", False),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "integer", False),
    ({"allOf": [{"type": "boolean"}, {"type": "integer"}]}, "boolean or integer", False),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string", True),
    ({"oneOf": [reference("Name"), {"type": "integer"}]}, "integer or string", False),
    (
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "string (date-time)",
        True,
    ),
    ({"anyOf": [{"type": "string"}, {}]}, "anything", True),
]


@pytest.mark.parametrize(("node", "words", "nullable"), TYPES, ids=str)
def test_types_in_words(node: Any, words: str, nullable: bool) -> None:  # noqa: FBT001
    found = schema(node)
    assert (found.words, found.nullable) == (words, nullable)


# A schema; its fields, and those that are always there.
FIELDS = [
    (reference("Money"), {"amount"}, {"amount"}),
    (
        {"allOf": [reference("Money"), {"properties": {"b": {}}, "required": ["b"]}]},
        {"amount", "b"},
        {"amount", "b"},
    ),
    (
        {"oneOf": [reference("Money"), {"properties": {"b": {}}, "required": ["b"]}]},
        {"amount", "b"},
        set(),
    ),
    ({"anyOf": [reference("Money"), {"type": "null"}]}, {"amount"}, {"amount"}),
    ({"type": "object", "additionalProperties": {"type": "string"}}, set(), set()),
]


def named(value: object) -> str:
    """Return a value's name, the same in every process: a set has no order."""
    return str(sorted(value) if isinstance(value, set) else value)


@pytest.mark.parametrize(("node", "fields", "required"), FIELDS, ids=named)
def test_fields(node: Any, fields: set[str], required: set[str]) -> None:
    found = schema(node)
    assert (set(found.fields), set(found.required)) == (fields, required)
    assert found.open is ("additionalProperties" in node)


def test_a_reference_keeps_the_text_of_its_target_and_a_nearer_one_wins() -> None:
    assert schema(reference("Name")).text == "What it is called."
    assert schema(reference("Name") | {"description": "The partner's."}).text == "The partner's."


def test_a_circle_ends() -> None:
    found = schema(reference("Loop"))
    assert found.fields["inner"] == ANYTHING


def test_what_doubles_at_every_level_ends_too() -> None:
    def level(number: int) -> dict[str, Any]:
        twice = {"$ref": f"#/levels/{number + 1}"}
        return {"type": "object", "properties": {name: dict(twice) for name in "abcd"}}

    document = Document({"levels": {str(number): level(number) for number in range(64)}})
    found = document.schema({"$ref": "#/levels/0"})
    assert set(found.fields) == set("abcd")
    assert document._left == 0 < NODES


WORDS = ["type", "properties", "items", "allOf", "anyOf", "oneOf", "$ref", "required", "enum"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["string", "#/a", "#"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*WORDS, "a"]), inner),
)


@settings(max_examples=50)
@given(JSON)
def test_any_json_is_read(node: Any) -> None:
    root = {"a": node} if not isinstance(node, dict) else node
    found = Document(root).schema(node)
    assert isinstance(found, Schema)
    assert found.words
