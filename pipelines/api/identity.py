"""Who we are to a service, out of what `/v2/whoami` says: the rule of what makes up an identity.

Its members are not shown in the interface document. So all count that can tell one caller from
another, and none that changes by itself: a wrong refusal costs one command, a wrong yes mixes two
companies' money. The paths can be set, where the rule takes too much or too little.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from pipelines.api.problem import cleaned
from pipelines.errors import ConfigurationError
from pipelines.settings import Connection
from pipelines.state.identities import Identity

# Words in a member's name: permissions, times, and what is new for every token or request.
PASSING = {
    *("scope", "scopes", "permission", "permissions", "version"),
    *("time", "timestamp", "date", "at", "iat", "exp", "nbf", "expires", "expiry", "issued"),
    *("jti", "nonce", "token", "request", "trace", "session", "correlation"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?", re.DOTALL)
MOST_SHOWN = DEEPEST = 8


def of_whoami(
    connection: Connection, says: Mapping[str, Any], claims: Mapping[str, Any]
) -> Identity:
    """Return the identity in an answer of whoami; where it tells none, the token's own claims.

    Raises ConfigurationError for a path of the setting `whoami` that is not in the answer.
    """
    if connection.whoami:
        return _identity(
            connection, {path: _at(connection, says, path) for path in connection.whoami}
        )
    own = {name: claims[name] for name in ("actor", "sub") if name in claims}
    return _identity(connection, dict(_lasting(says)) or own)


def of_name(connection: Connection) -> Identity:
    """Return the identity of a connection whose surface has no whoami: its host and its name."""
    return _identity(connection, {"connection": connection.name})


def _identity(connection: Connection, members: Mapping[str, Any]) -> Identity:
    host = httpx.URL(connection.base_url).host
    text = json.dumps([host, members], sort_keys=True)
    shown = ", ".join(
        f"{name} {cleaned(value)}" for name, value in sorted(members.items())[:MOST_SHOWN]
    )
    return Identity(host, hashlib.sha256(text.encode()).hexdigest(), cleaned(shown) or "unnamed")


def _lasting(says: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str | int]]:
    """Yield the texts, and the numbers called an id, of an object and those in it; no lists."""
    for name, value in says.items():
        words = set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))
        if words & PASSING:
            continue
        if isinstance(value, dict) and path.count(".") < DEEPEST:
            yield from _lasting(value, f"{path}{name}.")
        named = type(value) is int and "id" in words
        if named or (isinstance(value, str) and not TIME.fullmatch(value)):
            yield path + name, value


def _at(connection: Connection, says: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a path such as `account.id`."""
    value: Any = says
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            members = ", ".join(cleaned(each) for each in says) or "nothing"
            raise ConfigurationError(
                f"connection {connection.name}, whoami: {path} is not in the answer of "
                f"/v2/whoami, which has {members}"
            )
        value = value[name]
    return value
