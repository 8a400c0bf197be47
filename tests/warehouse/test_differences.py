"""Records against their description, both ways, on a warehouse that really holds them."""

import json
from typing import Any

import pytest

from pipelines.api.description import Operation
from pipelines.api.fields import Document
from pipelines.warehouse import differences, interface, schema
from pipelines.warehouse.differences import Differing
from tests.warehouse.conftest import Warehouse

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TIME = {"type": "string", "format": "date-time"}


def described(required: str = "id", **fields: Any) -> dict[str, Any]:
    every = {"id": STRING, **fields}
    return {"type": "object", "properties": every, "required": required.split()}


def compared(warehouse: Warehouse, records: list[Any], node: Any) -> list[Differing]:
    """Fold the records; return how they differ from a description."""
    rows = [{"id": str(number)} | record for number, record in enumerate(records)]
    warehouse.fold(warehouse.manifest(json.dumps(rows)))
    known = warehouse.registered()
    assert known is not None
    with warehouse.work.writing() as writer:
        counts = differences.count(writer, known.names, "things", "default")
    item = Document({}).schema(node)
    return list(differences.between(item, schema.from_json(known.shape), counts))


PERIOD = {"type": "object", "properties": {"start": TIME}, "required": ["start"]}
# Records, their description, and what is said: field, what, described, found.
CASES: dict[str, tuple[list[Any], Any, list[tuple[str, ...]]]] = {
    "as described": ([{"a": "x", "b": 1}], described("id a b", a=STRING, b=INTEGER), []),
    "nothing described": ([{"a": 1}], {}, []),
    "no rows": ([], described("id a", a=STRING), []),
    "not described": ([{"a": 1.5}], described(), [("a", "is not described", "", "number")]),
    "not described, and null": ([{"a": None}], described(), []),
    "keys that are data": ([{"a": 1}], described() | {"additionalProperties": INTEGER}, []),
    "never came": ([{}], described("id a", a=STRING), [("a", "never came", "string", "")]),
    "only null": (
        [{"a": None}],
        described("id a", a=STRING),
        [("a", "never came, or only null", "string", "")],
    ),
    "null as described": ([{"a": None}], described("id a", a={"type": ["string", "null"]}), []),
    "optional and absent": ([{}], described(a=STRING), []),
    "sometimes missing": (
        [{"a": "x"}, {"a": None}, {}],
        described("id a", a=STRING),
        [("a", "is not always there", "always there", "missing or null in 2 of 3 rows")],
    ),
    "an array that is not always there": (
        [{"a": [1]}, {"a": None}],
        described("id a", a={"type": "array", "items": INTEGER}),
        [("a", "is not always there", "always there", "missing or null in 1 of 2 rows")],
    ),
    "another type": (
        [{"a": 5}],
        described(a=STRING),
        [("a", "is of another type", "string", "integer")],
    ),
    "an integer for a number": ([{"a": 5}], described(a={"type": "number"}), []),
    "a number for an integer": (
        [{"a": 5.5}],
        described(a=INTEGER),
        [("a", "is of another type", "integer", "number")],
    ),
    "either": ([{"a": 5}, {"a": "x"}], described(a={"type": ["integer", "string"]}), []),
    "neither": (
        [{"a": 5}, {"a": "x"}],
        described(a=STRING),
        [("a", "is of another type", "string", schema.Kind.JSON)],
    ),
    "times": ([{"a": "2026-01-01T00:00:00Z"}], described(a=TIME), []),
    "no times": (
        [{"a": "yesterday"}],
        described(a=TIME),
        [("a", "is of another type", "string (date-time)", "string")],
    ),
    "decimals as texts": ([{"a": "12.50"}], described(a=STRING), []),
    "inside an object": (
        [{"p": {"start": 5, "more": True}}],
        described("id p", p=PERIOD),
        [
            ("p.more", "is not described", "", "boolean"),
            ("p.start", "is of another type", "string (date-time)", "integer"),
        ],
    ),
    "missing inside an object": (
        [{"p": {"start": "2026-01-01T00:00:00Z"}}, {"p": {}}],
        described("id p", p=PERIOD),
        [("p.start", "is not always there", "always there", "missing or null in 1 of 2 rows")],
    ),
    "inside an array": (
        [{"a": [{"b": 1, "c": 2}]}],
        described(a={"type": "array", "items": described(b=STRING)}),
        [
            ("a[].c", "is not described", "", "integer"),
            ("a[].b", "is of another type", "string", "integer"),
        ],
    ),
    "an array for a text": (
        [{"a": [1]}],
        described(a=STRING),
        [("a", "is of another type", "string", "array of integer")],
    ),
}
MIXED = "values of several types, or with too many digits"


@pytest.mark.parametrize(("records", "node", "said"), CASES.values(), ids=list(CASES))
def test_what_differs(
    warehouse: Warehouse, records: list[Any], node: Any, said: list[tuple[str, ...]]
) -> None:
    found = compared(warehouse, records, node)
    expected = [(*each[:3], MIXED if each[3] == schema.Kind.JSON else each[3]) for each in said]
    assert [(each.field, each.what, each.described, each.found) for each in found] == expected


def test_what_came_on_an_earlier_night_only_is_no_difference_today(warehouse: Warehouse) -> None:
    assert [each.field for each in compared(warehouse, [{"old": 1}], described())] == ["old"]
    assert compared(warehouse, [{"a": "x"}], described(a=STRING)) == []


# The records of two nights, a description, and what is said of the second: field, what, found.
LATER: dict[str, tuple[list[Any], list[Any], Any, list[tuple[str, ...]]]] = {
    "fits no column, and is not described": (
        [{"a": 5}],
        [{"a": "x"}, {"a": 6}],
        described("id a", a=INTEGER),
        [("a", "is of another type", "string (1 in the text beside it)")],
    ),
    "fits no column, and is described": (
        [{"a": 5}],
        [{"a": "x"}, {"a": "y"}],
        described("id a", a=STRING),
        [],
    ),
    "both": (
        [{"a": "x"}],
        [{"a": 5}, {"a": [1]}],
        described("id a", a=STRING),
        [("a", "is of another type", f"{MIXED} (2 in the text beside it)")],
    ),
    "a number or the text of one": (
        [{"a": "1.50"}],
        [{"a": "7"}, {"a": "8"}],
        described("id a", a=STRING),
        [],
    ),
    "in the items of an array": (
        [{"a": [{"b": 1}]}],
        [{"a": [{"b": "x"}, {"b": 2}]}, {"a": []}],
        described(a={"type": "array", "items": described(b=INTEGER)}),
        [("a[].b", "is of another type", "string (1 in the text beside it)")],
    ),
    "an object beside its columns": (
        [{"p": {"c": 1}}],
        [{"p": "x"}, {"p": {"c": 1}}],
        described("id p", p={"type": "object"}),
        [("p", "is of another type", "string (1 in the text beside it)")],
    ),
}


@pytest.mark.parametrize(("first", "second", "node", "said"), LATER.values(), ids=list(LATER))
def test_what_stands_beside_its_column_is_compared_too(
    warehouse: Warehouse, first: list[Any], second: list[Any], node: Any, said: list[Any]
) -> None:
    compared(warehouse, first, node)
    found = compared(warehouse, second, node)
    assert [(each.field, each.what, each.found) for each in found] == said


def test_tables_and_columns_take_the_texts_of_the_description(warehouse: Warehouse) -> None:
    compared(warehouse, [{"a": 5, "p": {"b": 1}, "late": "2026-01-01T00:00:00Z"}], {})
    known = warehouse.registered()
    assert known is not None
    fields: dict[str, Any] = {
        "a": INTEGER | {"description": 'It\'s\x1b an "A".'},
        "p": described(b={"description": "Inside."}),
        "late": TIME | {"description": "When."},
        "gone": STRING | {"description": "Never there."},
    }
    item = Document({}).schema(described(**fields))
    operation = Operation("GET", "/v2/things", None, (), item, "All things.")
    with warehouse.work.writing() as writer:
        interface.comment(writer, known.names, "things", operation)
        interface.comment(writer, known.names, "nothing", operation)
    comments = warehouse.query(
        "SELECT column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL ORDER BY 1"
    )
    assert [name for name, _ in comments] == ["a", "late", "late__offset", "p__b"]
    assert "It's" in str(comments[0][1])
    assert "\x1b" not in str(comments[0][1])
    table = "SELECT comment FROM duckdb_tables() WHERE schema_name = 'current'"
    assert warehouse.query(table) == [("All things.",)]
