"""Permission: the dependencies that let a request reach a route ("Authentication failures").

Here: one for each surface, in the order of the document's table: every 401 before any 403, and
all of them before any parameter or body is looked at. Not here: the tables (access).
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.requests import Request

from sandbox.access import MAPPINGS, Access
from sandbox.caller import CALLER, Caller
from sandbox.merchant.store import Key, Store
from sandbox.problem import ProblemError

INVALID = "The token is invalid or missing."  # "Errors": the general detail for bad credentials
INACTIVE = "API access is not active for this organization."
TRIAL_ENDED = "The free trial has ended and billing is not enabled."


def permitted(access: Access) -> Callable[[Request], Awaitable[Caller]]:
    """Give the dependency of a partner route: 401, 403 for the actor, 403 for the scope."""

    async def check(request: Request) -> Caller:
        caller: Caller | None = request.scope[CALLER]
        if caller is None or caller.api_key:
            raise ProblemError(HTTPStatus.UNAUTHORIZED, INVALID)
        if caller.actor not in access.actors:
            detail = f"The actor {caller.actor} may not use this route."
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        if access.scope and access.scope not in caller.scopes:
            detail = f"The token lacks the scope {access.scope}."
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        return caller

    return check


def key_permitted(scope: str, store: Store) -> Callable[[Request], Awaitable[Key]]:
    """Give the dependency of a merchant route: 401 twice, 403 for the mapping, 403 for the trial.

    Mappings and standing are read with every request ("API key", rules 3 and 4).
    """
    wanted = MAPPINGS[scope]

    async def check(request: Request) -> Key:
        caller: Caller | None = request.scope[CALLER]
        if caller is None or caller.api_key is None:
            raise ProblemError(HTTPStatus.UNAUTHORIZED, INVALID)
        key = caller.api_key
        standing = store.standing(key.organization)
        if not (standing.enabled or key.internal):  # rule 5
            raise ProblemError(HTTPStatus.UNAUTHORIZED, INACTIVE)
        if not set(wanted) & set(store.mappings(key.login)):
            detail = f"The key's owner lacks the mapping {' or '.join(wanted)} for {scope}."
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        if standing.blocked and not key.internal:
            raise ProblemError(HTTPStatus.FORBIDDEN, TRIAL_ENDED)
        return key

    return check
