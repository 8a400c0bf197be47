"""Who may reach what: actors and OAuth scopes of partner routes, mappings of merchant scopes.

The interface names the three actors and says that actor and scopes decide ("Authentication",
partner surface, rule 4); it does not show which (rule 5), so ``ACCESS`` is assumed and marked
``x-assumed`` in the interface description. ``MAPPINGS`` is the table of "API key", word by word.
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


ADMIN = ("companyAdmin",)
# "API key", the table: who holds one of the mappings has the scope.
MAPPINGS: dict[str, tuple[str, ...]] = {
    "organizations:gateways:read": ADMIN,
    "organizations:invoices:read": ADMIN,
    "organizations:customers:read": ADMIN,
    "organizations:customer-notes:create": ADMIN,
    "organizations:customer-notes:update": ADMIN,
    "organizations:customer-notes:delete": ADMIN,
    "organizations:payment-methods:read": ("companyAdmin", "manageProfiles"),
    "organizations:payment-links:create": ADMIN,
    "organizations:payment-method-requests:create": ADMIN,
    "organizations:payment-method-requests:read": ADMIN,
    "organizations:settings:read": ADMIN,
    "organizations:transactions:read": ADMIN,
    "organizations:users:read": ADMIN,
    "organizations:emails:read": ADMIN,
    "organizations:autoprocessing:read": ADMIN,
    "organizations:profile:read": ADMIN,
}
MERCHANT_GROUPS = {
    *("gateways", "invoices", "customers", "payment-methods", "payment-links"),
    *("payment-method-requests", "settings", "transactions", "users", "emails"),
    *("autoprocessing", "profile"),
}


def is_merchant(path: str) -> bool:
    """Tell whether a path is of the merchant surface, where only an API key opens anything."""
    group = path.removeprefix("/v2/").partition("/")[0]
    return path.startswith("/v2/") and group in MERCHANT_GROUPS
