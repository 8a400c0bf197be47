"""The desk: what every merchant route stands at, from the permission to the answer.

Here: routes made of the table of operations, the caller's organization, and the answers 200, 201,
204, 404. Not here: the operations one by one (merchant, notes, payments).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.body import read
from sandbox.clock import Clock, utc_now
from sandbox.data.listing import Listing
from sandbox.merchant.book import JSON, Book, encoded
from sandbox.merchant.operations import OPERATIONS, Operation
from sandbox.merchant.store import Key, Store
from sandbox.merchant.written import Writings
from sandbox.paging import integer, page
from sandbox.problem import ProblemError
from sandbox.records import CountedPage, Page
from sandbox.routes.permission import key_permitted

Body = TypeVar("Body", bound=BaseModel)
Handler = Callable[..., Coroutine[Any, Any, Response]]
MEDIA_TYPE = "application/json"
Limit = Annotated[int, Query(ge=1, le=100, description="Page size."), BeforeValidator(integer)]
Offset = Annotated[int, Query(ge=0, description="Items to skip."), BeforeValidator(integer)]


@dataclass(frozen=True)
class Visit:
    """One permitted request: whose key, and what lies open before it."""

    request: Request
    operation: Operation
    key: Key
    book: Book
    written: Writings
    clock: Clock

    @property
    def organization(self) -> str:
        """The organization that the key is scoped to ("API key", rule 2)."""
        return self.key.organization

    def now(self) -> datetime:
        """Give the time of a change: the real one, whatever day the seeded data are of."""
        return utc_now(self.clock)

    def part(self, name: str) -> str:
        """Give an identifier out of the path."""
        return str(self.request.path_params[name])

    async def body(self, kind: type[Body]) -> Body:
        """Read what was sent.

        Raises:
            ProblemError: 400, 413 or 415.
        """
        return await read(self.request, kind)

    def customer(self, customer_id: str) -> JSON:
        """Give a customer of the organization.

        Raises:
            ProblemError: 404 there is no such one, or it is of another organization.
        """
        return present(self.book.customer(customer_id), "customer")


def present(record: JSON | None, noun: str) -> JSON:
    """Insist that a record is there.

    Raises:
        ProblemError: 404.
    """
    if record is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, f"There is no such {noun}.")
    return record


def answer(record: JSON, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Answer with a record."""
    return Response(encoded(record), status, media_type=MEDIA_TYPE)


def created(record: JSON, location: str) -> Response:
    """Answer 201 with the record and where it can be got."""
    return Response(encoded(record), HTTPStatus.CREATED, {"Location": location}, MEDIA_TYPE)


def gone() -> Response:
    """Answer 204."""
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _described(one: Operation) -> Any:
    if one.counted and one.page:
        return CountedPage[one.page]  # type: ignore[name-defined]
    return Page[one.page] if one.page else one.record  # type: ignore[name-defined]


class Desk:
    """Makes the merchant surface's routes."""

    def __init__(self, store: Store, books: Callable[[str], Book], clock: Clock) -> None:
        self._store = store
        self._books = books
        self._clock = clock
        self._written = Writings(store.engine)

    def add(self, router: APIRouter, name: str, handle: Handler) -> None:
        """Add the operation of this name; ``handle`` is given the visit."""
        one = OPERATIONS[name]
        permitted = Annotated[Key, Depends(key_permitted(one.scope, self._store))]

        async def operation(request: Request, key: permitted) -> Response:
            return await handle(self._visit(request, one, key))

        self._route(router, one, operation)

    def add_list(self, router: APIRouter, name: str, listing: Callable[[Visit], Listing]) -> None:
        """Add the list of this name."""
        one = OPERATIONS[name]
        permitted = Annotated[Key, Depends(key_permitted(one.scope, self._store))]

        async def operation(
            request: Request,
            key: permitted,
            limit: Limit = 20,
            offset: Offset = 0,
        ) -> Response:
            found = listing(self._visit(request, one, key))
            content = page(found, limit, offset)
            if one.counted:
                content = content[:-1] + b',"total":%d}' % found.count
            return Response(content, media_type=MEDIA_TYPE)

        self._route(router, one, operation)

    def _visit(self, request: Request, operation: Operation, key: Key) -> Visit:
        book = self._books(key.organization)
        return Visit(request, operation, key, book, self._written, self._clock)

    def _route(self, router: APIRouter, one: Operation, handle: Handler) -> None:
        router.add_api_route(
            one.path,
            handle,
            methods=[one.method],
            name=one.name,
            summary=one.summary,
            tags=[one.group],
            status_code=one.status,
            response_model=_described(one),
            response_class=JSONResponse if one.status != HTTPStatus.NO_CONTENT else Response,
        )
