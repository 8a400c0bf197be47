"""The merchant surface's reads: eight lists, the settings, the profile, one customer.

Here: which list of the organization's book each path shows. Not here: what callers write (notes,
payments), the envelope (paging), the records (merchant).
"""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from sandbox.data.listing import Listing
from sandbox.merchant.operations import READS
from sandbox.routes.desk import Desk, Visit, answer
from sandbox.routes.notes import add_notes
from sandbox.routes.payments import add_payments


def merchant_routes(desk: Desk) -> APIRouter:
    """Give the routes of the merchant surface."""
    router = APIRouter()
    for one in READS:
        desk.add_list(router, one.name, _listing(one.path.removeprefix("/v2/")))
    desk.add(router, "settings", settings)
    desk.add(router, "profile", profile)
    desk.add(router, "customer", customer)
    add_notes(desk, router)
    add_payments(desk, router)
    return router


def _listing(name: str) -> Callable[[Visit], Listing]:
    return lambda visit: visit.book.listing(name)


async def settings(visit: Visit) -> Response:
    """Answer the organization's settings."""
    return answer(visit.book.settings)


async def profile(visit: Visit) -> Response:
    """Answer the organization's profile."""
    return answer(visit.book.profile)


async def customer(visit: Visit) -> Response:
    """Answer one customer."""
    return answer(visit.customer(visit.part("customerId")))
