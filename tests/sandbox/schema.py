"""A small reader of JSON Schema, as far as the interface description uses it.

Here: does a value conform, and where not. Not here: what the description should say. It knows
the description's keywords only, and fails on any other.
"""

import re
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
NOTES = {"title", "description", "default", "format", "x-assumed", "x-assumed-place"}
KEYWORDS = NOTES | {
    *("$ref", "type", "anyOf", "enum", "const", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("items", "properties", "required", "additionalProperties"),
}


def resolved(document: Any, reference: str) -> Any:
    """Give what a local reference of the document points to."""
    place = document
    for part in reference.removeprefix("#/").split("/"):
        place = place[part]
    return place


def faults(document: Any, schema: Any, value: Any, where: str = "$") -> Iterator[str]:
    """Name every place where the value does not conform to the schema."""
    assert set(schema) <= KEYWORDS, (where, set(schema) - KEYWORDS)
    if "$ref" in schema:
        yield from faults(document, resolved(document, schema["$ref"]), value, where)
    elif "anyOf" in schema:
        if all(any(faults(document, one, value, where)) for one in schema["anyOf"]):
            yield f"{where} conforms to nothing it may be"
    elif not _has_type(schema["type"], value):
        yield f"{where} is no {schema['type']}"
    else:
        yield from _scalar_faults(schema, value, where)
        yield from _inner_faults(document, schema, value, where)


def _has_type(name: str, value: Any) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean") == isinstance(value, bool)


def _scalar_faults(schema: Any, value: Any, where: str) -> Iterator[str]:
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where} is none of {schema.get('enum', schema.get('const'))}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where} does not match {schema['pattern']}"
    bounds = {"minimum": "maximum", "minLength": "maxLength", "minItems": "maxItems"}
    for least, most in bounds.items():
        if least in schema or most in schema:
            measure = value if least == "minimum" else len(value)
            if not schema.get(least, measure) <= measure <= schema.get(most, measure):
                yield f"{where} is out of bounds"
    if schema.get("uniqueItems") and len(value) > len({str(item) for item in value}):
        yield f"{where} has an item twice"


def _inner_faults(document: Any, schema: Any, value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in (*schema.get("required", ()), *value):
            if name not in value or name not in known:
                yield f"{where}.{name} is missing or not described"
            else:
                yield from faults(document, known[name], value[name], f"{where}.{name}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from faults(document, schema["items"], item, f"{where}[{index}]")
