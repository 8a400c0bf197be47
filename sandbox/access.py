"""Who may reach what: the one table of actors, OAuth scopes and partner routes.

The interface names the three actors and says that actor and scopes decide ("Authentication",
partner surface, rule 4); it does not show which (rule 5). Everything here is therefore assumed,
and marked ``x-assumed`` in the interface description.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Actor = Literal["distributor", "partner", "organization"]
ACTORS: tuple[Actor, ...] = get_args(Actor)


@dataclass(frozen=True)
class Access:
    """The actors a route accepts, and the scope it requires (None: any valid token will do)."""

    actors: tuple[Actor, ...]
    scope: str | None


ACCESS = {
    "/v2/whoami": Access(ACTORS, None),
    "/v2/plans": Access(("distributor", "partner"), "plans:read"),
    "/v2/partners": Access(("distributor",), "partners:read"),
    "/v2/organizations": Access(("distributor", "partner"), "organizations:read"),
    "/v2/usage": Access(("distributor", "partner"), "usage:read"),
    "/v2/billing": Access(("distributor", "partner"), "billing:read"),
}
SCOPES = tuple(access.scope for access in ACCESS.values() if access.scope)


def scopes_of(actor: Actor) -> tuple[str, ...]:
    """Give every scope that is of any use to an actor."""
    return tuple(
        access.scope for access in ACCESS.values() if access.scope and actor in access.actors
    )
