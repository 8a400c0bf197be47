"""The interface description: OpenAPI 3.1, authoritative for bounds and schemas ("Versioning").

Here: what FastAPI cannot know from the routes, namely security, problems and headers.
Not here: the schemas (records) and the bounds (routes). What the interface document does not
show carries ``x-assumed: true``.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sandbox.access import ACCESS
from sandbox.admission import TOKEN_PATH
from sandbox.options import Options
from sandbox.problem import MEDIA_TYPE
from sandbox.records import Problem, RateLimitProblem, TokenRequest

JSON = dict[str, Any]
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
    "400": ("A parameter is out of bounds or no integer.", ASSUMED),
    "401": ("Credentials missing, invalid or expired.", {}),
    "403": ("Actor type wrong for the route, or required OAuth scope missing.", {}),
    "429": ("Rate limit exceeded.", {}),
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
            _complete(path, operation, limited=options.limits.rate > 0)
    components = document["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["schemas"] |= {
        model.__name__: model.model_json_schema() for model in (Problem, RateLimitProblem)
    }
    components["securitySchemes"] = {"bearer": BEARER}
    components["headers"] = {name: _integer(text) for name, text in (HEADERS | RETRY_AFTER).items()}
    components["responses"] = {status: _failure(status) for status in FAILURES}
    return document


def _integer(text: str) -> JSON:
    return {"description": text, "schema": {"type": "integer"}}


def _references(names: dict[str, str]) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _failure(status: str) -> JSON:
    text, marks = FAILURES[status]
    schema = "RateLimitProblem" if status == "429" else "Problem"
    return {
        "description": text,
        "headers": _references(HEADERS | (RETRY_AFTER if status == "429" else {})),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
        **marks,
    }


def _complete(path: str, operation: JSON, *, limited: bool) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    if "Identity provider" in operation["tags"]:
        _complete_identity(path, operation)
        return
    if limited:
        responses["200"]["headers"] = _references(HEADERS)
    access = ACCESS.get(path)
    if access is None:
        return
    operation["security"] = [{"bearer": [access.scope] if access.scope else []}]
    operation["x-access"] = {"actors": access.actors, "scope": access.scope, **ASSUMED}
    statuses = [status for status in FAILURES if status != "400" or "parameters" in operation]
    for status in statuses:
        responses[status] = {"$ref": f"#/components/responses/{status}"}


def _complete_identity(path: str, operation: JSON) -> None:
    operation["security"] = []
    if path != TOKEN_PATH:
        return
    schema = TokenRequest.model_json_schema()
    operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": schema}},
    }
    text = {"type": "string"}
    error = {"type": "object", "properties": {"error": text, "error_description": text}}
    content = {"application/json": {"schema": error}}
    for status, meaning in (("400", "The request is malformed."), ("401", "Wrong credentials.")):
        operation["responses"][status] = {"description": meaning, "content": content, **ASSUMED}
