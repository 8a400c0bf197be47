"""The caller of a request: who its valid credentials say it is. Decided once, before limiting.

Here: the value, the credentials in a request's headers, and the place in the ASGI scope where the
decision is handed on. Not here: verifying (provider, merchant.store), what a caller may reach.
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from sandbox.access import Actor, is_merchant
from sandbox.merchant.store import Key

CALLER = "sandbox.caller"  # key in the ASGI scope: a Caller, or None without valid credentials
API_KEY = "x-api-key"


@dataclass(frozen=True)
class Caller:
    """An authenticated actor with the scopes that were granted to it, or with its API key."""

    actor: Actor
    subject: str
    scopes: tuple[str, ...] = ()
    api_key: Key | None = None

    @property
    def key(self) -> str:
        """What its rate limit is keyed by ("Limits", rule 1): keys of one organization share."""
        return f"{self.actor}:{self.subject}"


def bearer(scope: Scope) -> str | None:
    """Give the bearer token of a request, None if it has none or more than one."""
    given = Headers(scope=scope).getlist("authorization")
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def api_key(scope: Scope) -> str | None:
    """Give the API key of a request, None if it has none or more than one."""
    given = Headers(scope=scope).getlist(API_KEY)
    return given[0] if len(given) == 1 else None


@dataclass(frozen=True)
class Callers:
    """Tells who calls, by the two functions that verify."""

    token: Callable[[str], Caller | None]
    key: Callable[[str], Key | None]

    def identify(self, scope: Scope) -> Caller | None:
        """Give the caller. Of two valid credentials those of the path's surface count.

        Assumed: a key that is not revoked stands for its organization even where that is
        disabled, so the 401 comes out of the organization's window and not of the address's.
        """
        if is_merchant(scope["path"]):
            return self._by_key(scope) or self._by_token(scope)
        return self._by_token(scope) or self._by_key(scope)

    def _by_token(self, scope: Scope) -> Caller | None:
        given = bearer(scope)
        return self.token(given) if given else None

    def _by_key(self, scope: Scope) -> Caller | None:
        given = api_key(scope)
        found = self.key(given) if given else None
        return Caller("organization", found.organization, api_key=found) if found else None
