"""Examples of the interface description: what this very sandbox answers, and can be asked.

Here: identifiers that exist, bodies that succeed, records as they are served. They are of the
first key's organization; another key is answered 404 for them. Not here: the schemas.
"""

import json
from collections.abc import Callable
from typing import Any

from sandbox.data.dataset import Dataset
from sandbox.data.listing import Pageable
from sandbox.merchant.book import Book
from sandbox.merchant.ledger import customer_id
from sandbox.merchant.operations import OPERATIONS, Operation
from sandbox.merchant.written import Writings
from sandbox.paging import page
from sandbox.routes.partner import LISTS

JSON = dict[str, Any]


def first_page(listing: Pageable, limit: int) -> JSON:
    """Give the first page of a list with its first record alone."""
    found: JSON = json.loads(page(listing, limit, 0))
    return found | {"data": found["data"][:1]}


class Examples:
    """Examples of both surfaces; of the merchant's only where there is a key."""

    def __init__(self, dataset: Dataset, merchant: "MerchantExamples | None") -> None:
        self._dataset = dataset
        self._merchant = merchant

    def add(self, paths: JSON) -> None:
        """Put examples into the description of every operation."""
        for one in LISTS:
            content = paths[one.path]["get"]["responses"]["200"]["content"]["application/json"]
            content["example"] = first_page(getattr(self._dataset, one.name), one.bounds.default)
        if self._merchant:
            for operation in OPERATIONS.values():
                described = paths[operation.path][operation.method.lower()]
                self._merchant.add(described, operation)


class MerchantExamples:
    """Examples out of one organization's book and of what was written of it at first."""

    def __init__(self, book: Book, written: Writings) -> None:
        office = book.office
        self._book = book
        self._written = written
        self._organization = office.id
        self.identifiers = self._identifiers(0)
        self._links = {kind: office.draw(kind, 0).id for kind in ("applied", "unapplied")}

    def add(self, operation: JSON, one: Operation) -> None:
        """Put examples into the description of one operation."""
        # Whoever tries one example after the other shall find what the next one names.
        names = self._identifiers({"delete_note": 3, "delete_reply": 6}.get(one.name, 0))
        if "/payment-links/" in one.path:
            names = names | {"paymentLinkId": self._links[one.path.split("/")[3]]}
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                parameter["example"] = names[parameter["name"]]
        if one.body:
            operation["requestBody"]["content"]["application/json"]["example"] = self._body(one)
        example = self._answer(one)
        if example is not None:
            content = operation["responses"][str(one.status)]["content"]
            content["application/json"]["example"] = example

    def _identifiers(self, place: int) -> dict[str, str]:
        office = self._book.office
        return {
            "customerId": customer_id(office, place),
            "noteId": office.draw("notes", place).id,
            "replyId": office.draw("replies", place).id,
            "paymentMethodRequestId": office.draw("payment-method-requests", place).id,
        }

    def _body(self, one: Operation) -> JSON:
        customer = {"customerId": self.identifiers["customerId"]}
        due = (one["invoiceId"] for one in self._book.invoices() if one["amountDue"] != "0.00")
        bodies: dict[str, Callable[[], JSON]] = {
            "NoteBody": lambda: {"text": "Called: they will pay on Friday."},
            "ReplyBody": lambda: {"text": "They have paid."},
            "NoteStatusBody": lambda: {"status": "resolved"},
            "AlertBody": lambda: {"message": "Call before shipping.", "severity": "warning"},
            "UnappliedLinkBody": lambda: customer | {"amount": "25.00", "expiresInDays": 7},
            "AppliedLinkBody": lambda: {"invoiceIds": [next(due)], "description": "Thank you"},
            "MethodRequestBody": lambda: customer | {"kinds": ["card"], "message": None},
        }
        return bodies[one.body.__name__ if one.body else ""]()

    def _answer(self, one: Operation) -> JSON | None:
        written, names = self._written, self.identifiers
        whose = {"organization": self._organization}
        if one.page:
            return self._page(one)
        records: dict[str, Callable[[], JSON | None]] = {
            "Settings": lambda: self._book.settings,
            "Profile": lambda: self._book.profile,
            "Customer": lambda: self._book.customer(names["customerId"]),
            "CustomerNote": lambda: written.notes.get(names["noteId"], **whose),
            "NoteReply": lambda: written.replies.get(names["replyId"], **whose),
            "CustomerAlert": lambda: written.alerts.get(names["customerId"], **whose),
            "PaymentLink": lambda: written.payment_links.get(
                self._links[one.path.split("/")[3]], **whose
            ),
            "PaymentMethodRequest": lambda: written.payment_method_requests.get(
                names["paymentMethodRequestId"], **whose
            ),
        }
        return records[one.record.__name__]() if one.record else None

    def _page(self, one: Operation) -> JSON:
        whose = {"organization": self._organization}
        if one.name == "notes":
            customer = self.identifiers["customerId"]
            return first_page(self._written.notes.listing(**whose, customer=customer), 20)
        if one.name == "replies":
            note = self.identifiers["noteId"]
            return first_page(self._written.replies.listing(**whose, note=note), 20)
        if one.name == "payment_method_requests":
            return first_page(self._written.payment_method_requests.listing(**whose), 20)
        listing = self._book.listing(one.path.removeprefix("/v2/"))
        total = {"total": listing.count} if one.name == "invoices" else {}
        return first_page(listing, 20) | total
