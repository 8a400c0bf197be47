"""Problems: every failure as ``application/problem+json`` (RFC 7807, "Errors").

Here: the body, and the handlers that turn exceptions into it. Not here: deciding that something
failed. Slugs other than ``unauthorized`` and ``too_many_requests`` are assumed: the status's
phrase in snake case, as those two are.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from sandbox.access import is_merchant

MEDIA_TYPE = "application/problem+json"
METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
NOT_ALLOWED = HTTPStatus.METHOD_NOT_ALLOWED
TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
DETAILS = {
    404: "There is nothing at this path.",
    405: "This path does not answer this method.",
    500: "The service failed to answer. The failure has been noted.",
}


def title(status: int) -> str:
    """Give the short title of a status."""
    # RFC 9110; Python before 3.13 has the older phrase.
    return "Content Too Large" if status == TOO_LARGE else HTTPStatus(status).phrase


def slug(status: int) -> str:
    """Give the last part of a problem's type."""
    return title(status).lower().replace(" ", "_").replace("-", "_")


class ProblemError(Exception):
    """A failure to tell the caller about."""

    def __init__(self, status: int, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.members = members


class Problems:
    """Writes the problems of one service, whose types live under ``{base_url}/problems/``."""

    def __init__(self, base_url: str) -> None:
        self._types = f"{base_url}/problems/"

    def response(
        self, scope: Scope, error: ProblemError, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Write a problem as the answer to the request of ``scope``."""
        body = {
            "type": self._types + slug(error.status),
            "title": title(error.status),
            "status": error.status,
            "detail": error.detail,
            "instance": quote(scope["path"], safe="/:@!$&'()*+,;=~"),
            **error.members,
        }
        extra = dict(headers or {})
        if error.status == HTTPStatus.UNAUTHORIZED:
            # RFC 9110 demands it of a 401; a bearer token would open no merchant route.
            extra["WWW-Authenticate"] = "ApiKey" if is_merchant(scope["path"]) else "Bearer"
        content = json.dumps(body, ensure_ascii=False).encode()
        return Response(content, error.status, extra, MEDIA_TYPE)

    def install(self, api: FastAPI) -> None:
        """Make every exception of ``api`` a problem."""

        async def problem(request: Request, error: Exception) -> Response:
            headers = _headers(error)
            if isinstance(error, HTTPException) and error.status_code == NOT_ALLOWED:
                headers = {"Allow": ", ".join(allowed(api, request.scope))}
            return self.response(request.scope, _described(error), headers)

        for kind in (ProblemError, HTTPException, RequestValidationError, Exception):
            api.add_exception_handler(kind, problem)


def allowed(api: FastAPI, scope: Scope) -> list[str]:
    """Give every method that a path answers; the router itself names those of one route alone."""
    tried = [(method, {**scope, "method": method}) for method in METHODS]
    return [
        method
        for method, asked in tried
        if any(route.matches(asked)[0] is Match.FULL for route in api.routes)
    ]


def _headers(error: Exception) -> Mapping[str, str] | None:
    return error.headers if isinstance(error, HTTPException) else None


def _described(error: Exception) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    status = error.status_code if isinstance(error, HTTPException) else 500
    return ProblemError(status, DETAILS.get(status, title(status)))


def _invalid(error: RequestValidationError) -> ProblemError:
    errors = [
        {"in": fault["loc"][0], "field": fault["loc"][-1], "detail": fault["msg"]}
        for fault in error.errors()
    ]
    detail = "; ".join(f"{fault['field']}: {fault['detail']}" for fault in errors)
    return ProblemError(HTTPStatus.BAD_REQUEST, detail, errors=errors)
