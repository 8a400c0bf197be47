"""The partner surface: whoami and the five lists.

Here: bounds and page of each route, and whose lists a caller gets. Not here: the envelope (paging),
records (data).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator
from starlette.responses import JSONResponse, Response

from sandbox.access import ACCESS
from sandbox.caller import Caller
from sandbox.data.dataset import Dataset
from sandbox.data.dataset import dataset as made
from sandbox.data.listing import Pageable
from sandbox.options import Options
from sandbox.paging import Bounds, integer, page
from sandbox.records import Billing, Organization, Page, Partner, Plan, Usage, Whoami
from sandbox.routes.permission import permitted

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

    seeded = {client.id: client.seed for client in options.clients if client.seed is not None}
    own = {
        subject: made(seed, options.sizes, awkward=options.awkward, field_names=options.field_names)
        for subject, seed in seeded.items()
    }
    most = dict(options.most)
    for one in LISTS:
        largest = most.get(one.name, one.bounds.most)
        bounds = Bounds(min(one.bounds.default, largest), largest)
        _add(router, replace(one, bounds=bounds), lambda caller: own.get(caller.subject, dataset))
    return router


def _add(router: APIRouter, one: ListRoute, of: Callable[[Caller], Dataset]) -> None:
    most = one.bounds.most
    extra: dict[str, Any] = {} if one.shown else ASSUMED

    @router.get(
        one.path,
        name=one.name,
        summary=f"List {one.name}",
        response_model=Page[one.record],  # type: ignore[name-defined]
        openapi_extra=extra,
    )
    async def read(
        caller: Annotated[Caller, Depends(permitted(ACCESS[one.path]))],
        limit: Annotated[
            int, Query(ge=1, le=most, description="Page size."), BeforeValidator(integer)
        ] = one.bounds.default,
        offset: Annotated[
            int, Query(ge=0, description="Items to skip."), BeforeValidator(integer)
        ] = 0,
    ) -> Response:
        listing: Pageable = getattr(of(caller), one.name)
        return Response(page(listing, limit, offset), media_type="application/json")
