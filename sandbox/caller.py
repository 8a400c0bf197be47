"""The caller of a request: who a valid token says it is. Decided once, before limiting.

Here: the value, the bearer token in a request's headers, and the place in the ASGI scope where
the decision is handed on. Not here: verifying (provider), what a caller may reach (access).
"""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from sandbox.access import Actor

CALLER = "sandbox.caller"  # key in the ASGI scope: a Caller, or None without valid credentials


@dataclass(frozen=True)
class Caller:
    """An authenticated actor with the scopes that were granted to it."""

    actor: Actor
    subject: str
    scopes: tuple[str, ...]

    @property
    def key(self) -> str:
        """What its rate limit is keyed by ("Limits", rule 1)."""
        return f"{self.actor}:{self.subject}"


def bearer(scope: Scope) -> str | None:
    """Give the bearer token of a request, None if it has none or more than one."""
    given = Headers(scope=scope).getlist("authorization")
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
