"""Who a connection is to the service: the lasting members of whoami, and the limiter's actor."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from pipelines.config.connections import Connection
from pipelines.core.text import printable

# Words in a member's name that mark what changes by itself: rights, times, numbers of requests.
PASSING = {
    *("scope", "scopes", "permission", "permissions", "version"),
    *("time", "timestamp", "date", "at", "iat", "exp", "nbf", "expires", "expiry", "issued"),
    *("jti", "nonce", "token", "request", "trace", "session", "correlation"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?", re.DOTALL)
DEEPEST = 8
ACCOUNT = "account:"  # how a digest of an account begins


class ServiceIdentity(dict[str, str | int]):
    """Who the service says a connection is; equal for two runs of the same account.

    The members of whoami are not documented. So it holds all that can tell one account from
    another, by path (`account.id`), and none that changes by itself.
    """

    def __str__(self) -> str:
        shown = (f"{name} {value}" for name, value in sorted(self.items()))
        return printable(", ".join(shown)) or "unnamed"

    def change_since(self, before: Mapping[str, Any]) -> str:
        """Return how it differs from what was stated before, in words: perhaps by a name only."""
        changes = []
        for name in sorted(self.keys() | before.keys()):
            was = before.get(name, "not stated")
            now = self.get(name, "not stated")
            if was != now:
                changes.append(f"{name} was {was} and is {now}")
        return printable(", ".join(changes))


def service_identity(
    connection: Connection, whoami: Mapping[str, Any], claims: Mapping[str, Any]
) -> ServiceIdentity:
    """Return the identity that whoami states; where it states none, that of the token's claims.

    The merchant surface has no whoami: there the connection's name stands for the identity.
    """
    if connection.surface == "merchant":
        return ServiceIdentity(connection=connection.name)
    stated = dict(_lasting(whoami))
    if not stated:
        stated = {name: str(claims[name]) for name in ("actor", "sub") if name in claims}
    return ServiceIdentity(stated)


def actor_key(connection: Connection, pinned: Mapping[str, Any] | None) -> str:
    """Return the name under which the rate limit of a connection is counted.

    That is the setting rate_limit_key, else the ServiceIdentity pinned for the connection, before
    that the client id or API key. Only digests leave this function.
    """
    if connection.rate_limit_key:
        return f"key:{connection.rate_limit_key}"
    return account_key(connection, pinned)


def account_key(connection: Connection, pinned: Mapping[str, Any] | None) -> str:
    """Return a digest of the account of a connection; on the merchant surface, of its API key."""
    account: Mapping[str, Any] | str | None
    if connection.surface == "merchant":
        account = {"api_key": connection.read_secret()}
    elif pinned:
        account = dict(pinned)
    else:
        account = connection.client_id
    text = json.dumps([httpx.URL(connection.base_url).host, account], sort_keys=True)
    return f"{ACCOUNT}{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _lasting(answer: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str | int]]:
    """Yield the texts, and the numbers called an id, of an object and those in it; no lists."""
    for name, value in answer.items():
        words = set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))
        if words & PASSING:
            continue
        if isinstance(value, dict) and path.count(".") < DEEPEST:
            yield from _lasting(value, f"{path}{name}.")
        is_id = type(value) is int and "id" in words  # other numbers are counts
        is_text = isinstance(value, str) and not TIME.fullmatch(value)
        if is_id or is_text:
            yield path + name, value
