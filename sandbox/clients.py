"""Credentials: the OAuth clients who may fetch a token, and the clients file.

Here: that file, and the one client and the one API key there are without it. Not here: tokens,
the file's ``[[keys]]`` (keys). Secrets are never printed: representations leave them out.
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
from sandbox.keys import ApiKey, KeyEntryError, read_keys

SECRET_VARIABLE = "SANDBOX_CLIENT_SECRET"  # noqa: S105 - the variable's name, no secret
KEY_VARIABLE = "SANDBOX_API_KEY"
FIELDS = {"id", "secret", "actor", "scopes", "seed"}


class ClientsFileError(ValueError):
    """The clients file cannot be used; the text says why and names no secret."""


@dataclass(frozen=True)
class Client:
    """Credentials and what they are good for; with a ``seed``, lists of its own made of that."""

    id: str
    secret: str = field(repr=False)
    actor: Actor = "distributor"
    scopes: tuple[str, ...] = SCOPES
    seed: int | None = None


def matching(clients: tuple[Client, ...], client_id: str, secret: str) -> Client | None:
    """Find the client with these credentials; a wrong id takes as long as a wrong secret."""
    found = next((client for client in clients if client.id == client_id), None)
    expected = found.secret if found else secrets.token_urlsafe()
    return found if hmac.compare_digest(_digest(expected), _digest(secret)) else None


def _digest(secret: str) -> bytes:
    # Digests have one length, so the comparison does not tell that of the secret.
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True)
class Credentials:
    """Everybody whom the service knows: clients of the partner surface, keys of the merchant's."""

    clients: tuple[Client, ...]
    keys: tuple[ApiKey, ...]


def read_clients(path: Path) -> Credentials:
    """Read the clients file: TOML, ``[[clients]]`` and ``[[keys]]``, at least one of either.

    A client has id, secret, actor and optionally scopes and seed; a key id, key, organization,
    login, and optionally mappings and internal.

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
    entries = document.get("clients", [])
    if not document or not set(document) <= {"clients", "keys"} or not isinstance(entries, list):
        raise ClientsFileError(f"{path} must hold [[clients]] or [[keys]] and nothing else")
    clients = tuple(_client(entry, f"{path}, client {n}") for n, entry in enumerate(entries, 1))
    if len({client.id for client in clients}) < len(clients):
        raise ClientsFileError(f"{path}: two clients have the same id")
    try:
        return Credentials(clients, read_keys(document.get("keys", [])))
    except KeyEntryError as error:
        raise ClientsFileError(f"{path}: {error}") from error


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
    seed = entry.get("seed")
    if type(seed) not in (int, type(None)):
        raise ClientsFileError(f"{where}: seed must be a whole number")
    return Client(entry["id"], entry["secret"], entry["actor"], tuple(scopes), seed)


@dataclass(frozen=True)
class Demo:
    """The one client and the one key there are without a clients file, and where they lie."""

    credentials: Credentials
    secret_at: str
    key_at: str

    def close(self) -> None:
        """Remove the files that this process made."""
        for place in {self.secret_at, self.key_at} - {SECRET_VARIABLE, KEY_VARIABLE}:
            Path(place).unlink(missing_ok=True)


def demo() -> Demo:
    """Make the client and the key ``demo``: from the environment, else made and written (0600)."""
    secret, secret_at = _given_or_made(SECRET_VARIABLE, ".secret")
    key, key_at = _given_or_made(KEY_VARIABLE, ".key")
    credentials = Credentials((Client("demo", secret),), (ApiKey("demo", key),))
    return Demo(credentials, secret_at, key_at)


def _given_or_made(variable: str, suffix: str) -> tuple[str, str]:
    given = os.environ.get(variable)
    if given:
        return given, variable
    made = secrets.token_urlsafe(32)
    # mkstemp opens with O_EXCL and mode 0600.
    handle, name = tempfile.mkstemp(prefix="sandbox-", suffix=suffix)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(made)
    return made, name
