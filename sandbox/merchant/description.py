"""What the interface description says of merchant operations beyond what FastAPI knows.

Here: security, access, path parameters, bodies, statuses and links of one operation. Not here:
the components that it refers to (sandbox.description), examples (sandbox.examples).
"""

import re
from typing import Any

from sandbox.access import MAPPINGS
from sandbox.merchant.operations import OPERATIONS, Operation
from sandbox.records import ID_PATTERN

JSON = dict[str, Any]
SCHEMAS = "#/components/schemas/"
ASSUMED = {"x-assumed": True}
NAME = re.compile(r"{(\w+)}")


def complete(operation: JSON, one: Operation) -> None:
    """Complete the description of one merchant operation."""
    operation["security"] = [{"apiKey": []}]
    mappings = list(MAPPINGS[one.scope])
    operation["x-access"] = {"scope": one.scope, "mappings": mappings}
    if not one.shown:
        operation |= ASSUMED
    named = [_path_parameter(name) for name in NAME.findall(one.path)]
    if named:
        operation["parameters"] = named + operation.get("parameters", [])
    if one.body:
        schema = {"$ref": f"{SCHEMAS}{one.body.__name__}"}
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    responses = operation["responses"]
    success = responses[str(one.status)]
    if one.name == "set_alert":
        responses["201"] = success | {"description": "There was none before."}
    if one.page:
        success["links"] = {"next": next_page(one.name, NAME.findall(one.path))}
    if one.creates:
        success["headers"] = {"Location": _location()}
        success["links"] = {
            name: _created(one, target)
            for name, target in (("get", one.creates), ("delete", f"delete_{one.creates}"))
            if target in OPERATIONS
        }


def statuses(one: Operation) -> list[str]:
    """Give the failures that an operation can answer."""
    found = ["401", "403", "429", "431"]
    if one.page or one.body:
        found.append("400")
    if one.body:
        found += ["413", "415"]
    if "{" in one.path or one.refers:
        found.append("404")
    if one.conflicts:
        found.append("409")
    return sorted(found)


def next_page(operation_id: str, path_names: list[str]) -> JSON:
    """Give the link from a page to the one after it ("Pagination parameters", rule 1)."""
    return {
        "operationId": operation_id,
        "description": "The next page, unless next_offset is null.",
        "parameters": {
            **{name: f"$request.path.{name}" for name in path_names},
            "limit": "$response.body#/pagination/limit",
            "offset": "$response.body#/pagination/next_offset",
        },
    }


def _created(one: Operation, target: str) -> JSON:
    name = {"note": "noteId", "reply": "replyId"}.get(one.creates)
    if name is None:
        requested = one.creates == "payment_method_request"
        name = "paymentMethodRequestId" if requested else "paymentLinkId"
    parents = {parent: f"$request.path.{parent}" for parent in NAME.findall(one.path)}
    return {
        "operationId": target,
        "description": "What was created, by its identifier.",
        "parameters": parents | {name: f"$response.body#/{name}"},
    }


def _location() -> JSON:
    text = "Where it can be got."
    return {"description": text, "schema": {"type": "string", "format": "uri-reference"}}


def _path_parameter(name: str) -> JSON:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": "Opaque identifier.",
        "schema": {"type": "string", "pattern": ID_PATTERN},
        **ASSUMED,
    }
