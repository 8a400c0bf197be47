"""Operational routes: health, readiness, the interface description, and the statistics.

Here: what is not rate limited ("Limits", rule 2), and ``/__sandbox__/``, which is no part of the
interface and not described. Not here: what the description says (description).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from sandbox.pages import render
from sandbox.records import Health


def operational_routes(describe: Callable[[], dict[str, Any]]) -> APIRouter:
    """Give the operational routes; ``describe`` is asked once, when all routes are known."""
    router = APIRouter(tags=["Operational"])
    description = lru_cache(maxsize=1)(describe)

    @router.get("/healthz")
    async def healthz() -> Health:
        """Tell that the process answers."""
        return Health(status="ok")

    @router.get("/readiness")
    async def readiness() -> Health:
        """Tell that requests can be served."""
        return Health(status="ready")

    @router.get("/docs/openapi.json")
    async def interface_description() -> JSONResponse:
        """Get this description."""
        return JSONResponse(description())

    @router.get("/docs/", response_class=HTMLResponse)
    async def documentation() -> HTMLResponse:
        """Read this description in a browser."""
        return HTMLResponse(render(description()))

    @router.get("/docs", include_in_schema=False)
    async def documentation_folder() -> RedirectResponse:
        return RedirectResponse("/docs/")

    return router
