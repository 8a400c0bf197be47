"""The merchant surface as one table: every operation with its path, scope, body and record.

Here: what routes are made of and the interface description is completed by. The two paths that
the interface shows are marked; all others are assumed. Not here: what an operation does (routes).
"""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from sandbox.merchant import bodies, schemas

CUSTOMER = "/v2/customers/{customerId}"
NOTE = CUSTOMER + "/notes/{noteId}"
REPLY = NOTE + "/replies/{replyId}"
ALERT = CUSTOMER + "/alert"
UNAPPLIED = "/v2/payment-links/unapplied"
APPLIED = "/v2/payment-links/applied"
REQUESTS = "/v2/payment-method-requests"


@dataclass(frozen=True)
class Operation:
    """One operation; it answers a page, a record, or 204 where it has neither."""

    name: str
    method: str
    path: str
    short_scope: str
    summary: str
    page: type[BaseModel] | None = None
    record: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    creates: str = ""  # the operation that gets what this one has created
    refers: bool = False  # its body names something that may be missing
    conflicts: bool = False
    counted: bool = False  # "Pagination envelope": the invoice list extends it by a total
    shown: bool = False

    @property
    def scope(self) -> str:
        """The scope that guards it ("API key", the table)."""
        return f"organizations:{self.short_scope}"

    @property
    def group(self) -> str:
        """The route group that it belongs to ("What the service does")."""
        first = self.path.split("/")[2]
        notes = self.path.startswith(CUSTOMER + "/")
        return "Customer notes" if notes else GROUPS.get(first, first.capitalize())

    @property
    def status(self) -> int:
        """The status of its success."""
        if self.creates:
            return 201
        return 200 if self.page or self.record else 204


GROUPS = {
    "payment-methods": "Payment methods",
    "payment-links": "Payment links",
    "payment-method-requests": "Payment method requests",
    "autoprocessing": "Autoprocessing forecast",
}


def _list(path: str, scope: str, page: type[BaseModel], **more: Any) -> Operation:
    words = path.removeprefix("/v2/").replace("-", " ").replace("/", " ")
    name = words.replace(" ", "_")
    return Operation(name, "GET", path, scope, f"List {words}", page=page, **more)


READS = (
    _list("/v2/gateways", "gateways:read", schemas.Gateway, shown=True),
    _list("/v2/invoices", "invoices:read", schemas.Invoice, shown=True, counted=True),
    _list("/v2/customers", "customers:read", schemas.Customer),
    _list("/v2/payment-methods", "payment-methods:read", schemas.PaymentMethod),
    _list("/v2/transactions", "transactions:read", schemas.Transaction),
    _list("/v2/users", "users:read", schemas.User),
    _list("/v2/emails", "emails:read", schemas.Email),
    _list("/v2/autoprocessing/forecast", "autoprocessing:read", schemas.ForecastItem),
)
OBJECTS = (
    Operation(
        *("settings", "GET", "/v2/settings", "settings:read", "Get the settings"),
        record=schemas.Settings,
    ),
    Operation(
        *("profile", "GET", "/v2/profile", "profile:read", "Get the profile"),
        record=schemas.Profile,
    ),
    Operation(
        *("customer", "GET", CUSTOMER, "customers:read", "Get a customer"),
        record=schemas.Customer,
    ),
)
NOTES = (
    Operation(
        *("notes", "GET", CUSTOMER + "/notes", "customers:read", "List a customer's notes"),
        page=schemas.CustomerNote,
    ),
    Operation(
        *("create_note", "POST", CUSTOMER + "/notes", "customer-notes:create", "Create a note"),
        record=schemas.CustomerNote,
        body=bodies.NoteBody,
        creates="note",
    ),
    Operation(
        *("note", "GET", NOTE, "customers:read", "Get a note"),
        record=schemas.CustomerNote,
    ),
    Operation(
        *("update_note", "PATCH", NOTE, "customer-notes:update", "Change the text of a note"),
        record=schemas.CustomerNote,
        body=bodies.NoteBody,
    ),
    Operation(
        *("delete_note", "DELETE", NOTE, "customer-notes:delete"),
        "Delete a note and its replies",
    ),
    Operation(
        *("set_status", "PUT", NOTE + "/status", "customer-notes:update", "Set a note's status"),
        record=schemas.CustomerNote,
        body=bodies.NoteStatusBody,
    ),
    Operation(
        *("replies", "GET", NOTE + "/replies", "customers:read", "List the replies to a note"),
        page=schemas.NoteReply,
    ),
    Operation(
        *("create_reply", "POST", NOTE + "/replies", "customer-notes:create", "Reply to a note"),
        record=schemas.NoteReply,
        body=bodies.ReplyBody,
        creates="reply",
    ),
    Operation(
        *("reply", "GET", REPLY, "customers:read", "Get a reply"),
        record=schemas.NoteReply,
    ),
    Operation("delete_reply", "DELETE", REPLY, "customer-notes:delete", "Delete a reply"),
    Operation(
        *("alert", "GET", ALERT, "customers:read", "Get a customer's alert"),
        record=schemas.CustomerAlert,
    ),
    Operation(
        *("set_alert", "PUT", ALERT, "customer-notes:update", "Set a customer's alert"),
        record=schemas.CustomerAlert,
        body=bodies.AlertBody,
    ),
    Operation("delete_alert", "DELETE", ALERT, "customer-notes:delete", "Delete an alert"),
)
PAYMENTS = (
    Operation(
        *("create_unapplied_link", "POST", UNAPPLIED, "payment-links:create"),
        "Create a payment link towards no invoice",
        record=schemas.PaymentLink,
        body=bodies.UnappliedLinkBody,
        creates="unapplied_link",
        refers=True,
    ),
    Operation(
        *("create_applied_link", "POST", APPLIED, "payment-links:create"),
        "Create a payment link towards invoices",
        record=schemas.PaymentLink,
        body=bodies.AppliedLinkBody,
        creates="applied_link",
        refers=True,
        conflicts=True,
    ),
    Operation(
        *("unapplied_link", "GET", UNAPPLIED + "/{paymentLinkId}", "payment-links:create"),
        "Get a payment link towards no invoice",
        record=schemas.PaymentLink,
    ),
    Operation(
        *("applied_link", "GET", APPLIED + "/{paymentLinkId}", "payment-links:create"),
        "Get a payment link towards invoices",
        record=schemas.PaymentLink,
    ),
    Operation(
        *("payment_method_requests", "GET", REQUESTS, "payment-method-requests:read"),
        "List payment method requests",
        page=schemas.PaymentMethodRequest,
    ),
    Operation(
        *("create_payment_method_request", "POST", REQUESTS, "payment-method-requests:create"),
        "Ask a customer to put a payment method on file",
        record=schemas.PaymentMethodRequest,
        body=bodies.MethodRequestBody,
        creates="payment_method_request",
        refers=True,
    ),
    Operation(
        "payment_method_request",
        "GET",
        REQUESTS + "/{paymentMethodRequestId}",
        "payment-method-requests:read",
        "Get a payment method request",
        record=schemas.PaymentMethodRequest,
    ),
)
OPERATIONS = {one.name: one for one in (*READS, *OBJECTS, *NOTES, *PAYMENTS)}
