"""A month's figures from every archived page of both lists: no row is left out, none chosen for us.

Here: the newest published readings, page after page, and of each record what was read last. No
table is asked but for which manifests they are. Not here: figures by their rows (explaining).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
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
    """The archive, and which field is what."""

    archive: Archive
    given: Roles

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
        for record in self._records(manifest):
            key = str(record.get(manifest.key)) if manifest.key else json.dumps(record, default=str)
            found.pop(key, None)  # what is read last counts, also where it is of another month then
            if self._is(record, roles, wanted):
                found[key] = _numbers(record, roles)
        return list(found.values())

    def _records(self, manifest: Manifest) -> Iterator[dict[str, Any]]:
        for linked in manifest.pages:
            for text in page.records(self.archive.body(linked.sha256)):
                try:
                    found = json.loads(bytes(text), parse_float=Decimal, parse_int=Decimal)
                except UNREADABLE:
                    continue  # set aside: it is in no table
                if isinstance(found, dict):
                    yield found

    def _is(self, record: Mapping[str, Any], roles: Any, wanted: Wanted) -> bool:
        if roles.currency and value(record, roles.currency) != wanted.currency:
            return False
        whose = value(record, roles.partner) if roles.partner else None
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


def _numbers(record: Mapping[str, Any], roles: Any) -> tuple[Decimal | None, ...]:
    """Return amount, quantity and expected amount of a record."""
    amount, quantity, price = (
        decimal(value(record, path)) if (path := getattr(roles, name, None)) else None
        for name in ("amount", "quantity", "price")
    )
    expected = None if quantity is None or price is None else quantity * price
    return amount, quantity, expected
