"""OAuth clients: who may fetch a token, with which secret, as which actor.

Here: the clients file, and the one client there is without it. Not here: tokens. Secrets are
never printed: a client's representation leaves its secret out.
"""

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.access import ACTORS, SCOPES, Actor, scopes_of

SECRET_VARIABLE = "SANDBOX_CLIENT_SECRET"  # noqa: S105 - the variable's name, no secret
FIELDS = {"id", "secret", "actor", "scopes"}


class ClientsFileError(ValueError):
    """The clients file cannot be used; the text says why and names no secret."""


@dataclass(frozen=True)
class Client:
    """Credentials and what they are good for."""

    id: str
    secret: str = field(repr=False)
    actor: Actor = "distributor"
    scopes: tuple[str, ...] = SCOPES


def matching(clients: tuple[Client, ...], client_id: str, secret: str) -> Client | None:
    """Find the client with these credentials; a wrong id takes as long as a wrong secret."""
    found = next((client for client in clients if client.id == client_id), None)
    expected = found.secret if found else secrets.token_urlsafe()
    return found if hmac.compare_digest(_digest(expected), _digest(secret)) else None


def _digest(secret: str) -> bytes:
    # Digests have one length, so the comparison does not tell that of the secret.
    return hashlib.sha256(secret.encode()).digest()


def read_clients(path: Path) -> tuple[Client, ...]:
    """Read the clients file: TOML, ``[[clients]]`` with id, secret, actor and optionally scopes.

    Raises:
        ClientsFileError: it is missing, readable by others, no TOML, or says something unknown.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise ClientsFileError(f"{path} has mode {mode:04o}: it holds secrets, chmod 600 it")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClientsFileError(f"{path} cannot be read: {error}") from error
    entries = document.get("clients")
    if set(document) != {"clients"} or not isinstance(entries, list) or not entries:
        raise ClientsFileError(f"{path} must hold one or more [[clients]] and nothing else")
    clients = tuple(_client(entry, f"{path}, client {n}") for n, entry in enumerate(entries, 1))
    if len({client.id for client in clients}) < len(clients):
        raise ClientsFileError(f"{path}: two clients have the same id")
    return clients


def _client(entry: Any, where: str) -> Client:
    if not isinstance(entry, dict) or not set(entry) <= FIELDS:
        raise ClientsFileError(f"{where}: the fields are {', '.join(sorted(FIELDS))}")
    for name in ("id", "secret"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            raise ClientsFileError(f"{where}: {name} must be a text that is not empty")
    if not entry["id"].isprintable():
        raise ClientsFileError(f"{where}: id must be printable, it stands in the ready line")
    if entry.get("actor") not in ACTORS:
        raise ClientsFileError(f"{where}: actor must be one of {', '.join(ACTORS)}")
    scopes = entry.get("scopes", list(scopes_of(entry["actor"])))
    if not isinstance(scopes, list) or not all(scope in SCOPES for scope in scopes):
        raise ClientsFileError(f"{where}: scopes must be a list out of {', '.join(SCOPES)}")
    return Client(entry["id"], entry["secret"], entry["actor"], tuple(scopes))


@dataclass(frozen=True)
class Demo:
    """The one client there is without a clients file, and where its secret can be found."""

    client: Client
    secret_at: str
    made: Path | None

    def close(self) -> None:
        """Remove the secret's file if this process made it."""
        if self.made:
            self.made.unlink(missing_ok=True)


def demo() -> Demo:
    """Make the client ``demo``: its secret is in the environment, else made and written (0600)."""
    given = os.environ.get(SECRET_VARIABLE)
    if given:
        return Demo(Client("demo", given), SECRET_VARIABLE, None)
    secret = secrets.token_urlsafe(32)
    # mkstemp opens with O_EXCL and mode 0600.
    handle, name = tempfile.mkstemp(prefix="sandbox-", suffix=".secret")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(secret)
    return Demo(Client("demo", secret), name, Path(name))
