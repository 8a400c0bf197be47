"""The book of an organization: every list and object that its keys may read and nobody writes.

Here: the one door to the seeded records, and finding one by its identifier. Not here: what the
records contain (people, ledger), what callers write (written).
"""

import json
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from sandbox.data.listing import Listing
from sandbox.merchant import ledger, people
from sandbox.merchant.office import Office, before_epoch, moment
from sandbox.merchant.organizations import Organizations

JSON = dict[str, Any]
MOST_BOOKS = 64  # kept
ZONES = {"EUR": "Europe/Zurich", "USD": "America/New_York", "GBP": "Europe/London"}
LISTS: dict[str, Callable[[Office], list[JSON]]] = {
    "gateways": ledger.gateways,
    "invoices": ledger.invoices,
    "customers": people.customers,
    "payment-methods": ledger.payment_methods,
    "transactions": ledger.transactions,
    "users": people.users,
    "emails": people.emails,
    "autoprocessing/forecast": ledger.forecast,
}


def encoded(record: JSON) -> bytes:
    """Write a record as JSON, in its own scripts and without spaces."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


class Book:
    """One organization's seeded records."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self._listings: dict[str, Listing] = {}

    def listing(self, name: str) -> Listing:
        """Give a list by the last parts of its path."""
        if name not in self._listings:
            rows = [encoded(record) for record in LISTS[name](self.office)]
            self._listings[name] = Listing(len(rows), lambda start, stop: rows[start:stop])
        return self._listings[name]

    def customer(self, customer_id: str) -> JSON | None:
        """Give a customer, None if the organization has no such one."""
        return self._customers.get(customer_id)

    def invoices(self) -> list[JSON]:
        """Give all invoices."""
        return list(self._invoices.values())

    def invoice(self, invoice_id: str) -> JSON | None:
        """Give an invoice, None if the organization has no such one."""
        return self._invoices.get(invoice_id)

    @property
    def currency(self) -> str:
        """The currency of all its amounts."""
        return self.office.currency

    @cached_property
    def settings(self) -> JSON:
        """The organization's settings."""
        draw = self.office.draw("settings", 0)
        return {
            "organizationId": self.office.id,
            "currency": self.currency,
            "timezone": ZONES[self.currency],
            "locale": draw.of(("de-CH", "en-GB", "pl-PL"), 0),
            "autoprocessing": {
                "enabled": bool(draw.choices[1] % 2),
                "dayOfMonth": draw.choices[2] % 28 + 1,
                "retryDays": draw.choices[3] % 7 + 1,
            },
            "reminders": {"enabled": True, "daysAfterDue": [3, 10, 30]},
            "updatedAt": moment(before_epoch(draw.choices[4])),
        }

    @cached_property
    def profile(self) -> JSON:
        """The organization's profile."""
        record = self.office.record
        return {
            "organizationId": self.office.id,
            "partnerId": record["partnerId"],
            "name": record["name"],
            "contactEmail": "contact@merchant.example",
            "taxId": f"CHE-{self.office.draw('profile', 0).number(0):09d}",
            "createdAt": record["createdAt"],
            **({"address": record["address"]} if "address" in record else {}),
        }

    @cached_property
    def _customers(self) -> dict[str, JSON]:
        return {one["customerId"]: one for one in people.customers(self.office)}

    @cached_property
    def _invoices(self) -> dict[str, JSON]:
        return {one["invoiceId"]: one for one in ledger.invoices(self.office)}


def books(seed: int, organizations: Organizations) -> Callable[[str], Book]:
    """Give the function from an organization to its book."""

    @lru_cache(maxsize=MOST_BOOKS)
    def book(organization: str) -> Book:
        place = organizations.place(organization)
        if place is None:
            raise LookupError(f"there is no organization {organization}")
        return Book(Office(seed, place, organizations.at(place)))

    return book
