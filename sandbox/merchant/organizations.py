"""The organizations that keys belong to: those of the partner surface's list.

Here: finding one by its place or its identifier, and the keys of the options put into the store.
Not here: whether it is enabled by now (store).
"""

import json
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from sandbox.data.digest import identifier, source
from sandbox.data.organization import ORGANIZATIONS_PER_PARTNER, organization_record
from sandbox.data.sizes import Sizes
from sandbox.keys import ApiKey
from sandbox.merchant.store import Key, Store


class UnknownOrganizationError(ValueError):
    """A key names an organization that the data do not have."""


class Organizations:
    """The organizations as of one day."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self.count = sizes.partners_now * ORGANIZATIONS_PER_PARTNER
        self._write: Callable[[int], bytes] = organization_record(seed)
        self._chance = source(seed, "organizations")

    def at(self, place: int) -> Any:
        """Give the record of the organization at a place."""
        return json.loads(self._write(place))

    def place(self, organization: str) -> int | None:
        """Give the place of an organization, None if there is no such one."""
        return self._places.get(organization)

    def status(self, organization: str) -> str | None:
        """Give the status that an organization begins with, None if there is no such one."""
        place = self.place(organization)
        return None if place is None else str(self.at(place)["status"])

    def chosen(self, wanted: int | str | None) -> str | None:
        """Give the organization that a key asks for; None where there is none at all.

        Raises:
            UnknownOrganizationError: there is none of this identifier or at this place.
        """
        if wanted is None:
            return self._first_active()
        if isinstance(wanted, str) and self.place(wanted) is not None:
            return wanted
        if isinstance(wanted, int) and 0 <= wanted < self.count:
            return str(self.at(wanted)["organizationId"])
        raise UnknownOrganizationError(f"there is no organization {wanted}, only {self.count}")

    def add_keys(self, keys: Iterable[ApiKey], store: Store) -> None:
        """Put the keys of the options into the store.

        Raises:
            UnknownOrganizationError: a key names an organization that is not there.
        """
        for key in keys:
            organization = self.chosen(key.organization)
            if organization:
                made = Key(key.id, organization, key.login, key.internal, revoked=False)
                store.add(made, key.key, key.mappings)

    def _first_active(self) -> str | None:
        for place in range(self.count):
            record = self.at(place)
            if record["status"] == "active":
                return str(record["organizationId"])
        return None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {identifier(self._chance(place)): place for place in range(self.count)}
