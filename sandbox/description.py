"""The interface description: OpenAPI 3.1, authoritative for bounds and schemas ("Versioning").

Here: what FastAPI cannot know from the routes, namely security, problems, headers and links.
Not here: the schemas (records, merchant.schemas), the bounds (routes), what is particular to
merchant operations (merchant.description). What the interface document does not show carries
``x-assumed: true``.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from sandbox.access import ACCESS
from sandbox.admission import TOKEN_PATH
from sandbox.caller import API_KEY
from sandbox.examples import Examples
from sandbox.merchant.description import ASSUMED, SCHEMAS, complete, next_page, statuses
from sandbox.merchant.operations import OPERATIONS
from sandbox.options import Options
from sandbox.problem import MEDIA_TYPE, slug, title
from sandbox.records import (
    ParameterProblem,
    Problem,
    RateLimitProblem,
    TokenRefusal,
    TokenRequest,
)

JSON = dict[str, Any]
TEXT = """Both surfaces of the service interface, served by a sandbox. Each operation accepts
exactly one method of authentication: an API key (merchant) or a bearer token (partner).

Everything marked `x-assumed: true` is not shown by the interface document: it is what this
sandbox assumes, and the real service may differ."""
BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": f"A token of the identity provider: POST {TOKEN_PATH}.",
}
KEY = {
    "type": "apiKey",
    "in": "header",
    "name": API_KEY,
    "description": "Scoped to one organization; it carries the live mappings of its login.",
}
HEADERS = {
    "X-RateLimit-Limit": "Maximum requests in the window.",
    "X-RateLimit-Remaining": "Requests left in the current window.",
    "X-RateLimit-Reset": "Unix time in seconds when the window resets.",
}
RETRY_AFTER = {"Retry-After": "Whole seconds to wait. Clients must not retry earlier."}
FAILURES = {
    "400": ("A parameter or the body is not as described.", "ParameterProblem"),
    "401": ("Credentials missing, invalid or expired; organization disabled.", "Problem"),
    "403": ("Actor, scope or mapping do not suffice; the free trial has ended.", "Problem"),
    "404": ("There is no such thing in this organization.", "Problem"),
    "409": ("What is there does not allow it.", "Problem"),
    "413": ("The body is too long.", "Problem"),
    "415": ("The body is not said to be JSON.", "Problem"),
    "429": ("Rate limit exceeded.", "RateLimitProblem"),
    "431": ("The headers are too long.", "Problem"),
}
OPEN = {"type": "object", "properties": {}, "description": "The fields are not described."}
SHOWN_FAILURES = {"401", "403", "429"}


def describe(api: FastAPI, options: Options, examples: Examples) -> JSON:
    """Give the interface description of ``api``."""
    document = get_openapi(
        title="Payments service (sandbox)",
        version="v2",
        description=TEXT,
        routes=api.routes,
        servers=[{"url": options.base_url}],
    )
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(path, operation, options)
    components = document["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["schemas"] |= _schemas()
    if options.field_names != "usual":
        for unknown in ("Usage", "Billing"):
            components["schemas"][unknown] = OPEN
    components["securitySchemes"] = {"bearer": BEARER, "apiKey": KEY}
    components["headers"] = {name: _integer(text) for name, text in (HEADERS | RETRY_AFTER).items()}
    components["headers"]["WWW-Authenticate"] = _challenge()
    components["responses"] = {one: _failure(one, options.base_url) for one in FAILURES}
    examples.add(document["paths"])
    return document


def _schemas() -> JSON:
    served = (Problem, ParameterProblem, RateLimitProblem, TokenRefusal)
    sent = {one.body for one in OPERATIONS.values() if one.body}
    _, schema = models_json_schema(
        [
            *((model, "serialization") for model in served),
            *((model, "validation") for model in sorted(sent, key=lambda body: body.__name__)),
        ],
        ref_template=SCHEMAS + "{model}",
    )
    return dict(schema["$defs"])


def _integer(text: str) -> JSON:
    return {"description": text, "schema": {"type": "integer"}}


def _challenge() -> JSON:
    text = "The method of authentication that this path accepts: Bearer or ApiKey."
    return {"description": text, "schema": {"type": "string"}, **ASSUMED}


def _references(*names: str) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _failure(status: str, base_url: str) -> JSON:
    text, schema = FAILURES[status]
    extra = {"401": ["WWW-Authenticate"], "429": list(RETRY_AFTER)}.get(status, [])
    example: JSON = {
        "type": f"{base_url}/problems/{slug(int(status))}",
        "title": title(int(status)),
        "status": int(status),
        "detail": text,
        "instance": "/v2/invoices",
    }
    fault = {"in": "query", "field": "limit", "detail": "Input should be an integer"}
    members: dict[str, JSON] = {"400": {"errors": [fault]}, "429": {"retry_after_seconds": 1}}
    content = {
        "schema": {"$ref": f"{SCHEMAS}{schema}"},
        "example": example | members.get(status, {}),
    }
    return {
        "description": text,
        "headers": _references(*HEADERS, *extra),
        "content": {MEDIA_TYPE: content},
        **({} if status in SHOWN_FAILURES else ASSUMED),
    }


def _complete(path: str, operation: JSON, options: Options) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    if "Identity provider" in operation["tags"]:
        _complete_identity(path, operation, options)
        return
    merchant = OPERATIONS.get(operation["operationId"])
    if merchant:
        complete(operation, merchant)
        failures = statuses(merchant)
    else:
        failures = _complete_partner(path, operation)
    if options.limits.rate:
        for success in responses.values():
            success["headers"] = success.get("headers", {}) | _references(*HEADERS)
    responses |= {one: {"$ref": f"#/components/responses/{one}"} for one in failures}


def _complete_partner(path: str, operation: JSON) -> list[str]:
    """Complete a partner or operational route; gives the failures that it can answer."""
    access = ACCESS.get(path)
    if access is None:
        operation["security"] = []
        return []
    operation["security"] = [{"bearer": [access.scope] if access.scope else []}]
    operation["x-access"] = {"actors": access.actors, "scope": access.scope, **ASSUMED}
    if "parameters" not in operation:
        return ["401", "403", "429", "431"]
    operation["responses"]["200"]["links"] = {"next": next_page(operation["operationId"], [])}
    return ["400", "401", "403", "429", "431"]


def _complete_identity(path: str, operation: JSON, options: Options) -> None:
    operation["security"] = []
    if path != TOKEN_PATH:
        return
    schema = TokenRequest.model_json_schema()
    schema["properties"]["grant_type"]["const"] = "client_credentials"
    schema["properties"]["audience"]["const"] = options.audience
    operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": schema}},
    }
    content = {"application/json": {"schema": {"$ref": f"{SCHEMAS}TokenRefusal"}}}
    for status, meaning in (("400", "The request is malformed."), ("401", "Wrong credentials.")):
        operation["responses"][status] = {"description": meaning, "content": content, **ASSUMED}
    if options.limits.rate and options.limits.token_route:
        operation["responses"]["429"] = {"$ref": "#/components/responses/429"}
