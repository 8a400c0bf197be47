"""Requests that are read otherwise than they were written: limits changed, scopes taken away.

Not here: answers changed afterwards (the other families).
"""

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope

from sandbox.access import ACCESS
from sandbox.caller import CALLER, Caller
from sandbox.faults.kind import Kind, Stage

NEVER_VALID = 10**9


def _limit(scope: Scope) -> int | None:
    given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("limit", "")
    return int(given) if given.isascii() and given.isdigit() else None


def _ask(scope: Scope, limit: int) -> None:
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    scope["query_string"] = urlencode(query | {"limit": limit}).encode()


def clamp(scope: Scope, value: float) -> None:
    """Take a limit that is too large for ``value`` rather than refuse it."""
    asked = _limit(scope)
    if asked is not None and asked > value:
        _ask(scope, round(value))


def refuse(scope: Scope, value: float) -> None:
    """Refuse a limit above ``value``, smaller than the documented maximum."""
    asked = _limit(scope)
    if asked is not None and asked > value:
        _ask(scope, NEVER_VALID)


def halve(scope: Scope, _value: None) -> None:
    """Serve half as many items as were asked for; the envelope says so."""
    asked = _limit(scope)
    if asked is not None and asked > 1:
        _ask(scope, asked // 2)


def revoke_scope(scope: Scope, _value: None) -> None:
    """Take away the OAuth scope that this route requires."""
    caller = scope[CALLER]
    access = ACCESS.get(scope["path"])
    if isinstance(caller, Caller) and access:
        left = tuple(one for one in caller.scopes if one != access.scope)
        scope[CALLER] = replace(caller, scopes=left)


REQUEST = Stage.REQUEST
FAMILY = (
    Kind("clamp-limit", "a limit above value is taken as value", REQUEST, clamp, 100.0),
    Kind("refuse-limit", "a limit above value is refused with 400", REQUEST, refuse, 50.0),
    Kind("half-limit", "half the limit asked for, and said so", REQUEST, halve),
    Kind("scope-revoked", "the scope the route needs is gone: 403", REQUEST, revoke_scope),
)
