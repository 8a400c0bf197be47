"""The HTML documentation: the interface description as one page that needs no other host.

Here: operations, parameters and fields as HTML. Not here: what they mean (description).
"""

import json
from html import escape
from importlib.resources import files
from typing import Any

JSON = dict[str, Any]
STYLE = files("sandbox").joinpath("pages.css").read_text(encoding="utf-8")
ASSUMED_BADGE = '<span class="assumed" title="not shown by the interface document">assumed</span>'


def render(description: JSON) -> str:
    """Write the page."""
    title = escape(description["info"]["title"])
    operations = [
        (path, method, operation)
        for path, item in description["paths"].items()
        for method, operation in item.items()
    ]
    contents = "".join(
        f'<li><a href="#{operation["operationId"]}"><b>{method.upper()}</b> {escape(path)}</a></li>'
        for path, method, operation in operations
    )
    shared = description["components"]["responses"]
    sections = "".join(_operation(*one, shared) for one in operations)
    schemas = "".join(
        _schema(name, schema) for name, schema in description["components"]["schemas"].items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><nav><ul>{contents}</ul></nav><main><h1>{title}</h1>"
        f"<p>{escape(description['info']['description'])}</p>"
        '<p><a href="/docs/openapi.json">OpenAPI 3.1 description</a> of '
        f"<code>{escape(description['servers'][0]['url'])}</code></p>"
        f"{sections}<h2>Fields</h2>{schemas}</main></html>"
    )


def _operation(path: str, method: str, operation: JSON, shared: JSON) -> str:
    answers = "".join(
        _answer(status, shared.get(body.get("$ref", "").rpartition("/")[2], body))
        for status, body in operation["responses"].items()
    )
    return (
        f'<section id="{operation["operationId"]}"><h2><b>{method.upper()}</b> '
        f"<code>{escape(path)}</code>{_badge(operation)}</h2>"
        f"<p>{escape(operation.get('description') or operation['summary'])}</p>"
        f"{_access(operation)}{_parameters(operation.get('parameters', []))}{_body(operation)}"
        f"<ul>{answers}</ul></section>"
    )


def _badge(thing: JSON) -> str:
    return f" {ASSUMED_BADGE}" if thing.get("x-assumed") else ""


def _access(operation: JSON) -> str:
    access = operation.get("x-access")
    if access is None:
        return ""
    scope = f", scope <code>{access['scope']}</code>" if access["scope"] else ""
    if "mappings" in access:
        mappings = " or ".join(f"<code>{one}</code>" for one in access["mappings"])
        return f"<p>API key whose owner has the mapping {mappings}{scope}</p>"
    return f"<p>Bearer token of {escape(' or '.join(access['actors']))}{scope}{_badge(access)}</p>"


def _body(operation: JSON) -> str:
    contents = operation.get("requestBody", {}).get("content", {})
    return "".join(
        f"<p>Body: {_type(one['schema'])}{_example(one)}</p>" for one in contents.values()
    )


def _example(content: JSON) -> str:
    if "example" not in content:
        return ""
    shown = json.dumps(content["example"], ensure_ascii=False, indent=1)
    return f"<details><summary>example</summary><pre>{escape(shown)}</pre></details>"


def _parameters(parameters: list[JSON]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{one['name']}</code><td>{_type(one['schema'])}"
        f"<td>{_bounds(one['schema'])}"
        f"<td>{one['schema'].get('default', '')}<td>{escape(one.get('description', ''))}"
        for one in parameters
    )
    return f"<table><tr><th>Parameter<th>Type<th>Bounds<th>Default<th>Meaning{rows}</table>"


def _bounds(schema: JSON) -> str:
    if "pattern" in schema:
        return f"<code>{escape(schema['pattern'])}</code>"
    return f"{schema.get('minimum', '')} to {schema.get('maximum', 'any')}"


def _answer(status: str, body: JSON) -> str:
    content = body.get("content", {})
    kinds = [_type(one["schema"]) + _example(one) for one in content.values() if one.get("schema")]
    text = body.get("description", "")
    return f"<li><b>{status}</b> {escape(text)} {' '.join(kinds)}{_badge(body)}"


def _schema(name: str, schema: JSON) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{_badge(one)}<td>{_type(one)}"
        f"<td>{'' if field in required else 'may be missing'}"
        f"<td>{escape(one.get('description', ''))}"
        for field, one in schema.get("properties", {}).items()
    )
    heading = f"<h3>{escape(schema.get('title', name))}</h3>"
    text = escape(schema.get("description", ""))
    return f'<section id="{escape(name)}">{heading}<p>{text}</p><table>{rows}</table></section>'


def _type(schema: JSON) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"array of {_type(schema['items'])}"
    kind = schema.get("format") or schema.get("type", "any")
    return escape(str(kind))
