"""The interface description: OpenAPI 3.1, authoritative for bounds and schemas ("Versioning").

Here: what FastAPI cannot know from the routes, namely security, problems and headers.
Not here: the schemas (records) and the bounds (routes). What the interface document does not
show carries ``x-assumed: true``.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from sandbox.access import ACCESS
from sandbox.admission import TOKEN_PATH
from sandbox.options import Limits, Options
from sandbox.problem import MEDIA_TYPE
from sandbox.records import (
    ParameterProblem,
    Problem,
    RateLimitProblem,
    TokenRefusal,
    TokenRequest,
)

JSON = dict[str, Any]
SCHEMAS = "#/components/schemas/"
ASSUMED = {"x-assumed": True}
TEXT = """The partner surface of the service interface, served by a sandbox.

Everything marked `x-assumed: true` is not shown by the interface document: it is what this
sandbox assumes, and the real service may differ."""
BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": f"A token of the identity provider: POST {TOKEN_PATH}.",
}
HEADERS = {
    "X-RateLimit-Limit": "Maximum requests in the window.",
    "X-RateLimit-Remaining": "Requests left in the current window.",
    "X-RateLimit-Reset": "Unix time in seconds when the window resets.",
}
RETRY_AFTER = {"Retry-After": "Whole seconds to wait. Clients must not retry earlier."}
FAILURES = {
    "400": ("A parameter is out of bounds or no integer.", "ParameterProblem"),
    "401": ("Credentials missing, invalid or expired.", "Problem"),
    "403": ("Actor type wrong for the route, or required OAuth scope missing.", "Problem"),
    "429": ("Rate limit exceeded.", "RateLimitProblem"),
}


def describe(api: FastAPI, options: Options) -> JSON:
    """Give the interface description of ``api``."""
    document = get_openapi(
        title="Payments service: partner surface (sandbox)",
        version="v2",
        description=TEXT,
        routes=api.routes,
        servers=[{"url": options.base_url}],
    )
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(path, operation, options.limits)
    components = document["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["schemas"] |= _schemas()
    components["securitySchemes"] = {"bearer": BEARER}
    components["headers"] = {name: _integer(text) for name, text in (HEADERS | RETRY_AFTER).items()}
    components["responses"] = {status: _failure(status) for status in FAILURES}
    return document


def _schemas() -> JSON:
    models = (Problem, ParameterProblem, RateLimitProblem, TokenRefusal)
    _, schema = models_json_schema(
        [(model, "serialization") for model in models], ref_template=SCHEMAS + "{model}"
    )
    return dict(schema["$defs"])


def _integer(text: str) -> JSON:
    return {"description": text, "schema": {"type": "integer"}}


def _references(names: dict[str, str]) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _failure(status: str) -> JSON:
    text, schema = FAILURES[status]
    return {
        "description": text,
        "headers": _references(HEADERS | (RETRY_AFTER if status == "429" else {})),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"{SCHEMAS}{schema}"}}},
        **(ASSUMED if status == "400" else {}),
    }


def _complete(path: str, operation: JSON, limits: Limits) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    if "Identity provider" in operation["tags"]:
        _complete_identity(path, operation, limits)
        return
    if limits.rate:
        responses["200"]["headers"] = _references(HEADERS)
    access = ACCESS.get(path)
    if access is None:
        return
    operation["security"] = [{"bearer": [access.scope] if access.scope else []}]
    operation["x-access"] = {"actors": access.actors, "scope": access.scope, **ASSUMED}
    statuses = [status for status in FAILURES if status != "400" or "parameters" in operation]
    for status in statuses:
        responses[status] = {"$ref": f"#/components/responses/{status}"}


def _complete_identity(path: str, operation: JSON, limits: Limits) -> None:
    operation["security"] = []
    if path != TOKEN_PATH:
        return
    schema = TokenRequest.model_json_schema()
    operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": schema}},
    }
    content = {"application/json": {"schema": {"$ref": f"{SCHEMAS}TokenRefusal"}}}
    for status, meaning in (("400", "The request is malformed."), ("401", "Wrong credentials.")):
        operation["responses"][status] = {"description": meaning, "content": content, **ASSUMED}
    if limits.rate and limits.token_route:
        operation["responses"]["429"] = {"$ref": "#/components/responses/429"}
