"""API keys: who calls the merchant surface, for which organization, as whose login.

Here: the ``[[keys]]`` of the clients file, and the one key there is without that file. Not here:
which of them are revoked by now (merchant.store). Keys are never printed.
"""

from dataclasses import dataclass, field
from typing import Any

COMPANY_ADMIN = "companyAdmin"
FIELDS = {"id", "key", "organization", "login", "mappings", "internal"}
SHORTEST = 8  # characters


class KeyEntryError(ValueError):
    """A ``[[keys]]`` entry says something that no key can be; the text names no key."""


@dataclass(frozen=True)
class ApiKey:
    """A key to make at start, unless the store knows it.

    ``organization``: an identifier, the place in the list of organizations, or None for the first
    active one.
    """

    id: str
    key: str = field(repr=False)
    organization: int | str | None = None
    login: str = "demo"
    mappings: tuple[str, ...] = (COMPANY_ADMIN,)
    internal: bool = False


def read_keys(entries: Any) -> tuple[ApiKey, ...]:
    """Read the ``[[keys]]`` of a clients file.

    Raises:
        KeyEntryError: a field is unknown, missing or of the wrong kind, or two keys contradict.
    """
    if not isinstance(entries, list):
        raise KeyEntryError("keys must be written as [[keys]]")
    keys = tuple(_key(entry, f"key {number}") for number, entry in enumerate(entries, 1))
    for name in ("id", "key"):
        if len({getattr(key, name) for key in keys}) < len(keys):
            raise KeyEntryError(f"two keys have the same {name}")
    owners: dict[str, tuple[object, ...]] = {}
    for key in keys:
        # Mappings belong to the login ("API key", rule 3), and a login to its organization.
        owner = (key.organization, sorted(key.mappings))
        if owners.setdefault(key.login, owner) != owner:
            raise KeyEntryError(f"login {key.login} has two organizations or two sets of mappings")
    return keys


def _key(entry: Any, where: str) -> ApiKey:
    if not isinstance(entry, dict) or not set(entry) <= FIELDS:
        raise KeyEntryError(f"{where}: the fields are {', '.join(sorted(FIELDS))}")
    for name in ("id", "key", "login"):
        text = entry.get(name)
        if not isinstance(text, str) or not text.isprintable() or not text:
            raise KeyEntryError(f"{where}: {name} must be a printable text that is not empty")
    if len(entry["key"]) < SHORTEST or not entry["key"].isascii():
        raise KeyEntryError(f"{where}: key must have {SHORTEST} ASCII characters or more")
    if type(entry.get("organization")) not in (int, str):
        raise KeyEntryError(f"{where}: organization must be an identifier or a place in the list")
    mappings = entry.get("mappings", [COMPANY_ADMIN])
    if not isinstance(mappings, list) or not all(isinstance(one, str) for one in mappings):
        raise KeyEntryError(f"{where}: mappings must be a list of texts")
    if not isinstance(entry.get("internal", False), bool):
        raise KeyEntryError(f"{where}: internal must be true or false")
    return ApiKey(**entry | {"mappings": tuple(mappings)})
