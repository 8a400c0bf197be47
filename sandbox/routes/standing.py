"""Control routes for what decides who comes in: organizations, API keys, logins.

Here: what the interface leaves to the merchant application ("States and transitions"). Not here:
what a standing means for a request (permission).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Literal

from fastapi import APIRouter
from starlette.responses import JSONResponse

from sandbox.merchant.store import Store, UnknownError
from sandbox.problem import ProblemError
from sandbox.routes.control import Body, bad, control_router


class StandingBody(Body):
    """What changes of an organization; ``billing`` says how a trial ended."""

    enabled: bool | None = None
    trial: Literal["active", "ended"] | None = None
    billing: bool | None = None

    def apply(self, organization: str, store: Store) -> None:
        """Change the organization."""
        if self.enabled is not None:
            (store.enable if self.enabled else store.disable)(organization)
        if self.trial == "active":
            store.begin_trial(organization)
        if self.trial == "ended":
            store.end_trial(organization, billing=bool(self.billing))


class LoginBody(Body):
    """All mappings that a login has from now on."""

    mappings: list[str]


@contextmanager
def _found() -> Iterator[None]:
    try:
        yield
    except UnknownError as error:
        raise ProblemError(404, f"{error}.") from error


def standing_routes(store: Store) -> APIRouter:
    """Give the routes; every change is in force with the next request."""
    router = control_router()

    @router.get("/organizations/{organization}")
    async def standing(organization: str) -> JSONResponse:
        with _found():
            return JSONResponse(asdict(store.standing(organization)))

    @router.patch("/organizations/{organization}")
    async def stand(organization: str, body: StandingBody) -> JSONResponse:
        if body.billing is not None and body.trial != "ended":
            raise bad(ValueError("billing is said of a trial that has ended"))
        with _found():
            body.apply(organization, store)
            return JSONResponse(asdict(store.standing(organization)))

    @router.get("/keys")
    async def keys() -> JSONResponse:
        known = store.keys()
        return JSONResponse([asdict(key) for key in known])

    @router.post("/keys/{key}/revoke")
    async def revoke(key: str) -> JSONResponse:
        with _found():
            store.revoke(key)
        return JSONResponse({"id": key, "revoked": True})

    @router.get("/logins/{login}")
    async def mappings(login: str) -> JSONResponse:
        with _found():
            return JSONResponse({"id": login, "mappings": store.mappings(login)})

    @router.put("/logins/{login}")
    async def set_mappings(login: str, body: LoginBody) -> JSONResponse:
        with _found():
            store.set_mappings(login, tuple(body.mappings))
        return JSONResponse({"id": login, "mappings": body.mappings})

    return router
