"""A month's figures from every archived page of both lists: no row is left out, none chosen for us.

Here: the newest published readings, page after page, and of each record what was read last. No
table is asked but for which manifests they are. Not here: figures by their rows (explaining).
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

from pipelines.api import page
from pipelines.run.explanation import added
from pipelines.run.raw import UNREADABLE, decimal, value
from pipelines.settings.mapping import Mapping as Roles
from pipelines.warehouse.archive import Archive, Manifest

Numbers = dict[str, Decimal | None]


@dataclass(frozen=True)
class Wanted:
    """Whose figures: a partner, or all of them, in a month and a currency."""

    month: date
    currency: str | None
    partner: str | None
    every: bool


@dataclass(frozen=True)
class Rereading:
    """The archive, and which field is what; `partner` is the key of the list of partners.

    `conflicts` are records of each list (page, row) that are not loaded: another has their key.
    """

    archive: Archive
    given: Roles
    partner: str | None = None
    conflicts: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)

    def figures(self, wanted: Wanted, manifests: Mapping[str, str]) -> Numbers:
        """Return the figures of a month; `manifests` are those of the lists, by the list's name.

        Raises LandingFailed for a page that is missing or not what was read.
        """
        used = self._side("usage", wanted, manifests)
        billed = self._side("billing", wanted, manifests)
        return {
            "used_rows": Decimal(len(used)),
            "used_quantity": added(each[1] for each in used),
            "expected_amount": added(each[2] for each in used),
            "used_amount": added(each[0] for each in used),
            "billed_amount": added(each[0] for each in billed),
        }

    def _side(
        self, side: str, wanted: Wanted, manifests: Mapping[str, str]
    ) -> list[tuple[Decimal | None, ...]]:
        """Return amount, quantity and their price's product of each record that is wanted."""
        roles = getattr(self.given, side)
        if roles.stream not in manifests:
            return []
        manifest, found = self.archive.read(manifests[roles.stream]), dict[Any, Any]()
        for record in self._records(manifest, self._not_loaded(roles.stream)):
            key = _key(record, manifest)
            found.pop(key, None)  # what is read last counts, also where it is of another month then
            if record is not None and self._is(record, roles, wanted):
                found[key] = _numbers(record, roles)
        return list(found.values())

    def count(self, file: str) -> tuple[Manifest, int]:
        """Return a manifest, and how many different records its pages have, erased ones too."""
        manifest = self.archive.read(file)
        keys = {_key(record, manifest) for record in self._records(manifest)} - {None}
        unknown = sum(record is None for record in self._records(manifest))
        return manifest, len(keys) + unknown

    def _not_loaded(self, stream: str) -> set[bytes]:
        """Return the digests of the records in conflict: each may be on several pages."""
        rows = defaultdict[str, list[int]](list)
        for name, row in self.conflicts.get(stream, ()):
            rows[name].append(row)
        found = set[bytes]()
        for name, some in rows.items():
            texts = page.records(self.archive.body(name))
            found |= {_digest(texts[row]) for row in some}
        return found

    def _records(
        self, manifest: Manifest, without: Collection[bytes] = ()
    ) -> Iterator[dict[str, Any] | None]:
        """Yield every record in the order of its reading, None where nobody can read it."""
        for linked in manifest.pages:
            for text in page.records(self.archive.body(linked.sha256)):
                if without and _digest(text) in without:
                    continue
                try:
                    found = json.loads(bytes(text), parse_float=Decimal, parse_int=Decimal)
                except UNREADABLE:
                    found = None  # set aside: it is in no table
                yield found if isinstance(found, dict) else None

    def _is(self, record: Mapping[str, Any], roles: Any, wanted: Wanted) -> bool:
        if roles.currency and value(record, roles.currency) != wanted.currency:
            return False
        partner = roles.partner or self.partner
        whose = value(record, partner) if partner else None
        return (wanted.every or whose == wanted.partner) and self._month(
            value(record, roles.period) if roles.period else None
        ) == (wanted.month.year, wanted.month.month)

    def _month(self, text: Any) -> tuple[int, int] | None:
        """Return year and month of a date or time, in the mapping's time zone."""
        if not isinstance(text, str):
            return None
        try:
            moment = datetime.fromisoformat(text if len(text) != len("2026-09") else f"{text}-01")
        except ValueError:
            return None
        zone = ZoneInfo(self.given.time_zone)
        own = moment.astimezone(zone) if moment.tzinfo else moment
        return own.year, own.month


def _digest(text: Any) -> bytes:
    return sha256(bytes(text)).digest()


def _key(record: Mapping[str, Any] | None, manifest: Manifest) -> str | None:
    """Return what tells a record apart: its key, else all that it says."""
    if record is None:
        return None
    return json.dumps(record.get(manifest.key) if manifest.key else record, default=str)


def _numbers(record: Mapping[str, Any], roles: Any) -> tuple[Decimal | None, ...]:
    """Return amount, quantity and expected amount of a record."""
    amount, quantity, price = (
        decimal(value(record, path)) if (path := getattr(roles, name, None)) else None
        for name in ("amount", "quantity", "price")
    )
    expected = None if quantity is None or price is None else quantity * price
    return amount, quantity, expected
