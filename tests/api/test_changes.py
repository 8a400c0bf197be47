"""What changed between two descriptions: each difference with its meaning, and nothing else."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api import changes, description
from pipelines.api.changes import MOST
from tests.api.test_description import LIMIT, OFFSET, RECORD, listing, written

PATH = "/v2/plans"
STATUS = {"name": "status", "in": "query", "schema": {"type": "string"}}
FIELDS: dict[str, Any] = RECORD["properties"]  # type: ignore[assignment]
NESTED = {"type": "object", "properties": {"start": {"type": "string"}}}


def plans(*parameters: Any, **record: Any) -> dict[str, Any]:
    """Return paths with one list, whose records differ from the usual as said."""
    item = RECORD | record
    schema = {
        "properties": {"data": {"type": "array", "items": item}, "pagination": {"type": "object"}}
    }
    return {PATH: {"get": listing(*parameters, schema=schema)}}


def fields(**more: Any) -> dict[str, Any]:
    return plans(LIMIT, OFFSET, properties=FIELDS | more)


def limit(maximum: int) -> dict[str, Any]:
    return plans(LIMIT | {"schema": {"maximum": maximum}}, OFFSET)


def text(value: str) -> dict[str, Any]:
    paths = fields(name={"type": "string", "nullable": True, "description": value})
    paths[PATH]["get"] |= {"summary": value}
    return paths


def secured(name: str) -> dict[str, Any]:
    paths = fields()
    paths[PATH]["get"]["security"] = [{name: []}]
    return paths


USUAL = plans(LIMIT, OFFSET)
# From, to; and what is said: what, before, after, meaning.
CASES: dict[str, tuple[Any, Any, list[tuple[str, str, str, str]]]] = {
    "nothing": (USUAL, deepcopy(USUAL), []),
    "a text": (text("a"), text("b"), []),
    "a field more": (
        USUAL,
        fields(tax={"type": "integer"}),
        [("field tax", "", "integer", "safe")],
    ),
    "a field less": (fields(tax={}), USUAL, [("field tax", "anything", "", "breaking")]),
    "another type": (
        fields(tax={"type": "integer"}),
        fields(tax={"type": "string"}),
        [("type of field tax", "integer", "string", "breaking")],
    ),
    "a type inside": (
        fields(p=NESTED),
        fields(p=NESTED | {"properties": {"start": {"type": "integer"}}}),
        [("type of field p.start", "string", "integer", "breaking")],
    ),
    "a field in an array": (
        fields(p={"type": "array", "items": NESTED}),
        fields(p={"type": "array", "items": NESTED | {"properties": {}}}),
        [("field p[].start", "string", "", "breaking")],
    ),
    "not always there": (
        USUAL,
        plans(LIMIT, OFFSET, required=["planId"]),
        [("presence of field name", "may be null", "may be missing or null", "safe")],
    ),
    "a smaller limit": (limit(500), limit(100), [("largest limit", "500", "100", "breaking")]),
    "a larger limit": (limit(500), limit(900), [("largest limit", "500", "900", "opportunity")]),
    "a limit that is said": (
        plans(OFFSET, LIMIT | {"schema": {}}),
        USUAL,
        [("largest limit", "", "500", "safe")],
    ),
    "a filter": (
        USUAL,
        plans(LIMIT, OFFSET, STATUS),
        [("parameter status (query)", "", "optional", "opportunity")],
    ),
    "a demand": (
        USUAL,
        plans(LIMIT, OFFSET, STATUS | {"required": True}),
        [("parameter status (query)", "", "required", "breaking")],
    ),
    "a filter that is demanded": (
        plans(LIMIT, OFFSET, STATUS),
        plans(LIMIT, OFFSET, STATUS | {"required": True}),
        [("parameter status (query)", "optional", "required", "breaking")],
    ),
    "a filter less": (
        plans(LIMIT, OFFSET, STATUS),
        USUAL,
        [("parameter status (query)", "optional", "", "safe")],
    ),
    "no offset": (USUAL, plans(LIMIT), [("parameter offset (query)", "optional", "", "breaking")]),
    "a list": ({}, USUAL, [("list", "", "offered (surface not said)", "opportunity")]),
    "no list": (USUAL, {}, [("list", "offered (surface not said)", "", "breaking")]),
    "another surface": (
        secured("token"),
        secured("key"),
        [("surface", "partner", "merchant", "breaking")],
    ),
}
SCHEMES = {"token": {"type": "http", "scheme": "bearer"}, "key": {"type": "apiKey"}}


def read(paths: Any) -> description.Description:
    return description.read(written(paths, components={"securitySchemes": SCHEMES}))


@pytest.mark.parametrize(("older", "newer", "said"), CASES.values(), ids=list(CASES))
def test_what_changed(older: Any, newer: Any, said: list[tuple[str, ...]]) -> None:
    found = changes.between(read(older), read(newer))
    assert [(each.what, each.before, each.after, each.meaning) for each in found] == said
    assert {each.path for each in found} <= {PATH}


def test_another_services_description_is_not_told_line_by_line() -> None:
    many = {f"f{number}": {"type": "string"} for number in range(MOST + 500)}
    found = changes.between(read(fields(**many)), read(USUAL))
    assert len(found) == MOST
    assert (found[-1].what, found[-1].after) == ("other differences", "501 more")


TYPES = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, NESTED]
)
PROPERTIES = st.dictionaries(st.sampled_from("abcd"), TYPES)
PARAMETERS = st.lists(st.sampled_from([LIMIT, OFFSET, STATUS, STATUS | {"required": True}]))
DOCUMENTS = st.dictionaries(
    st.sampled_from([PATH, "/v2/usage"]),
    st.builds(
        lambda parameters, properties: plans(*parameters, properties=properties)[PATH],
        PARAMETERS,
        PROPERTIES,
    ),
)


@settings(max_examples=60)
@given(DOCUMENTS, DOCUMENTS)
def test_what_is_named_is_the_same_in_both_directions(older: Any, newer: Any) -> None:
    there = changes.between(read(older), read(newer))
    back = changes.between(read(newer), read(older))
    assert [(each.path, each.what, each.before, each.after) for each in there] == [
        (each.path, each.what, each.after, each.before) for each in back
    ]
    assert changes.between(read(older), read(json.loads(json.dumps(older)))) == ()
    assert bool(there) == (not _same(older, newer))


def _same(older: Any, newer: Any) -> bool:
    """Compare what matters of two documents without our parser."""

    def meaning(paths: Any) -> Any:
        return {
            path: (
                {each["name"]: bool(each.get("required")) for each in item["get"]["parameters"]},
                item["get"]["responses"]["200"]["content"]["application/json"]["schema"],
            )
            for path, item in paths.items()
        }

    return bool(meaning(older) == meaning(newer))
