"""The store's door for whoever decides who comes in: organizations, keys and logins.

Here: an organization's standing (enabled, trial, billing), API keys as SHA-256, the mappings of
logins; all read at request time ("API key", rules 3 and 4). Not here: HTTP, the records.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Engine, RowMapping, Select, delete, insert, select, update

from sandbox.merchant import tables

Trial = Literal["none", "active", "ended"]


class UnknownError(LookupError):
    """There is no organization, key or login of this name."""


@dataclass(frozen=True)
class Standing:
    """The conditions that gate an organization's routes ("States and transitions")."""

    enabled: bool = True
    trial: Trial = "none"
    billing: bool = True

    @property
    def blocked(self) -> bool:
        """Whether its trial ended without billing."""
        return self.trial == "ended" and not self.billing


# What the status of an organization in the partner surface's list begins as.
STANDINGS = {
    "active": Standing(),
    "trial": Standing(trial="active", billing=False),
    "disabled": Standing(enabled=False),
}

KEYS = select(*(column for column in tables.keys.c if column.name != "digest"))


@dataclass(frozen=True)
class Key:
    """An API key as the store knows it: everything but the key."""

    id: str
    organization: str
    login: str
    internal: bool
    revoked: bool


class Store:
    """Organizations, keys and logins; every change is in force with the next request."""

    def __init__(self, engine: Engine, status_of: Callable[[str], str | None]) -> None:
        """``status_of`` gives an organization's seeded status, None if there is no such one."""
        self.engine = engine
        self._status_of = status_of
        self._added: set[str] = set()  # keys of an earlier run's options are none of this one's
        self._digests: dict[str, bytes] = {}

    def standing(self, organization: str) -> Standing:
        """Give an organization's standing.

        Raises:
            UnknownError: there is no such organization.
        """
        columns = tables.organizations.c
        row = self._one(select(tables.organizations).where(columns.id == organization))
        if row:
            return Standing(row["enabled"], row["trial"], row["billing"])
        status = self._status_of(organization)
        if status is None:
            raise UnknownError(f"there is no organization {organization}")
        return STANDINGS[status]

    def enable(self, organization: str) -> None:
        """Let an organization's keys in again."""
        now = self.standing(organization)
        self._stand(organization, Standing(True, now.trial, now.billing))

    def disable(self, organization: str) -> None:
        """Keep an organization's keys out: 401."""
        now = self.standing(organization)
        self._stand(organization, Standing(False, now.trial, now.billing))

    def begin_trial(self, organization: str) -> None:
        """Put an organization into its free trial, without billing."""
        now = self.standing(organization)
        self._stand(organization, Standing(now.enabled, "active", False))

    def end_trial(self, organization: str, *, billing: bool) -> None:
        """End an organization's free trial; without billing its keys are kept out: 403."""
        now = self.standing(organization)
        self._stand(organization, Standing(now.enabled, "ended", billing))

    def keys(self) -> list[Key]:
        """List the keys, in the order of their ids."""
        with self.engine.connect() as connection:
            ours = KEYS.where(tables.keys.c.id.in_(self._added)).order_by(tables.keys.c.id)
            rows = connection.execute(ours).mappings()
            return [Key(**row) for row in rows]

    def revoke(self, key_id: str) -> None:
        """Make a key invalid from now on.

        Raises:
            UnknownError: there is no such key.
        """
        if key_id not in self._added:
            raise UnknownError(f"there is no key {key_id}")
        with self.engine.begin() as connection:
            change = update(tables.keys).where(tables.keys.c.id == key_id)
            connection.execute(change.values(revoked=True))
        self._digests.pop(key_id, None)

    def mappings(self, login: str) -> tuple[str, ...]:
        """Give the live mappings of a login.

        Raises:
            UnknownError: there is no such login.
        """
        row = self._one(select(tables.logins.c.mappings).where(tables.logins.c.id == login))
        if row is None:
            raise UnknownError(f"there is no login {login}")
        return tuple(row["mappings"])

    def set_mappings(self, login: str, mappings: tuple[str, ...]) -> None:
        """Give a login these mappings and no others.

        Raises:
            UnknownError: there is no such login.
        """
        self.mappings(login)
        change = update(tables.logins).where(tables.logins.c.id == login)
        with self.engine.begin() as connection:
            connection.execute(change.values(mappings=list(mappings)))

    def add(self, key: Key, secret: str, mappings: tuple[str, ...]) -> None:
        """Make a key and its login, unless the store knows them.

        What was changed while the service ran outlives a restart: the same key stays revoked, a
        known login keeps its mappings. Another key under the same id is a new one.
        """
        digest = digest_of(secret)
        columns, known = tables.keys.c, self._one(select(tables.logins).filter_by(id=key.login))
        with self.engine.begin() as connection:
            same = (columns.id == key.id) & (columns.digest == digest)
            revoked = connection.execute(select(columns.revoked).where(same)).scalar() or False
            connection.execute(delete(tables.keys).where(columns.id == key.id))
            row = {**vars(key), "digest": digest, "revoked": revoked}
            connection.execute(insert(tables.keys).values(row))
            if known is None:
                login = {"id": key.login, "organization": key.organization}
                connection.execute(insert(tables.logins).values(login | {"mappings": mappings}))
        self._added.add(key.id)
        if not revoked:
            self._digests[key.id] = digest

    def matching(self, secret: str) -> Key | None:
        """Find the key that is not revoked; how long it takes tells nothing about any key."""
        given, found = digest_of(secret), None
        for key_id, digest in self._digests.items():
            if hmac.compare_digest(digest, given):
                found = key_id
        row = self._one(KEYS.where(tables.keys.c.id == found)) if found else None
        return Key(**row) if row else None

    def _stand(self, organization: str, standing: Standing) -> None:
        columns = tables.organizations.c
        with self.engine.begin() as connection:
            connection.execute(delete(tables.organizations).where(columns.id == organization))
            row = {"id": organization} | vars(standing)
            connection.execute(insert(tables.organizations).values(row))

    def _one(self, query: Select[Any]) -> RowMapping | None:
        with self.engine.connect() as connection:
            return connection.execute(query).mappings().one_or_none()


def digest_of(secret: str) -> bytes:
    """Give what is stored of a key: random and long, so that one round of SHA-256 hides it."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
