"""The partner surface: whoami and the five lists.

Here: permission, bounds and page of each route. Not here: the envelope (paging), records (data).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.access import ACCESS, Access
from sandbox.caller import CALLER, Caller
from sandbox.data.dataset import Dataset
from sandbox.data.listing import Listing
from sandbox.options import Options
from sandbox.paging import Bounds, integer, page
from sandbox.problem import ProblemError
from sandbox.records import Billing, Organization, Page, Partner, Plan, Usage, Whoami

ASSUMED = {"x-assumed": True}
WHOAMI = "/v2/whoami"
DEFAULT_BOUNDS = Bounds(20, 100)  # "Paging limits": list endpoints in general


@dataclass(frozen=True)
class ListRoute:
    """One list of the surface. ``shown``: the interface shows its path."""

    name: str
    record: type[BaseModel]
    bounds: Bounds = DEFAULT_BOUNDS
    shown: bool = True

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/v2/{self.name}"


LISTS = (
    ListRoute("plans", Plan, shown=False),
    ListRoute("partners", Partner),
    ListRoute("organizations", Organization, shown=False),
    ListRoute("usage", Usage, Bounds(100, 500)),
    ListRoute("billing", Billing, Bounds(50, 100)),
)


def permitted(access: Access) -> Callable[[Request], Awaitable[Caller]]:
    """Give the dependency that lets a request pass only as ``access`` says.

    The exceptions are those of "Authentication failures": 401, then 403 for the actor, then
    403 for the scope; all before any parameter is looked at.
    """

    async def check(request: Request) -> Caller:
        caller: Caller | None = request.scope[CALLER]
        if caller is None:
            raise ProblemError(HTTPStatus.UNAUTHORIZED, "The token is invalid or missing.")
        if caller.actor not in access.actors:
            detail = f"The actor {caller.actor} may not use this route."
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        if access.scope and access.scope not in caller.scopes:
            detail = f"The token lacks the scope {access.scope}."
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        return caller

    return check


def partner_routes(options: Options, dataset: Dataset) -> APIRouter:
    """Give the routes of the partner surface."""
    router = APIRouter(tags=["Partner surface"])

    @router.get(WHOAMI, response_model=Whoami)
    async def whoami(
        caller: Annotated[Caller, Depends(permitted(ACCESS[WHOAMI]))],
    ) -> JSONResponse:
        """Describe the caller. Nothing in it changes from token to token."""
        return JSONResponse(
            {
                "actor": caller.actor,
                "subject": caller.subject,
                "scopes": caller.scopes,
                "audience": options.audience,
            }
        )

    for one in LISTS:
        _add(router, one, getattr(dataset, one.name))
    return router


def _add(router: APIRouter, one: ListRoute, listing: Listing) -> None:
    most = one.bounds.most
    extra: dict[str, Any] = {} if one.shown else ASSUMED

    @router.get(
        one.path,
        name=one.name,
        summary=f"List {one.name}",
        response_model=Page[one.record],  # type: ignore[name-defined]
        dependencies=[Depends(permitted(ACCESS[one.path]))],
        openapi_extra=extra,
    )
    async def read(
        limit: Annotated[
            int, Query(ge=1, le=most, description="Page size."), BeforeValidator(integer)
        ] = one.bounds.default,
        offset: Annotated[
            int, Query(ge=0, description="Items to skip."), BeforeValidator(integer)
        ] = 0,
    ) -> Response:
        return Response(page(listing, limit, offset), media_type="application/json")
