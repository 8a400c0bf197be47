"""The schemas of the merchant surface's records, for the interface description alone.

Here: fields and what they may hold; all of them are assumed ("… not shown"). Not here: the bodies
that callers send (bodies), serialization: the models are never filled.
"""

from typing import Annotated, Literal

from pydantic import Field

from sandbox.merchant.bodies import MethodKind, NoteStatus, Severity
from sandbox.records import Address, Amount, Assumed, CurrencyCode, Day, Identifier, Moment

Text = Annotated[str, Field(min_length=1)]
EmailAddress = Annotated[str, Field(json_schema_extra={"format": "email"})]


class Gateway(Assumed):
    """A way that payments can go."""

    gateway_id: Identifier
    name: Text
    provider: Text
    kinds: list[MethodKind]
    currencies: list[CurrencyCode]
    status: Literal["active", "inactive"]
    created_at: Moment


class InvoiceLine(Assumed):
    """One line of an invoice; amount is quantity times unitPrice."""

    description: Text
    quantity: int = Field(ge=1)
    unit_price: Amount
    amount: Amount


class Invoice(Assumed):
    """An invoice; its lines add up to its amount."""

    invoice_id: Identifier
    invoice_number: Text
    customer_id: Identifier
    status: Literal["open", "overdue", "paid", "void"]
    currency: CurrencyCode
    amount: Amount
    amount_due: Amount
    issued_at: Moment
    due_at: Day
    lines: list[InvoiceLine]


class Customer(Assumed):
    """Somebody whom the organization sends invoices to."""

    customer_id: Identifier
    name: Text
    email: EmailAddress
    phone: str | None
    external_id: str
    status: Literal["active", "archived"]
    currency: CurrencyCode
    created_at: Moment
    address: Address | None = None


class CustomerNote(Assumed):
    """A note on a customer."""

    note_id: Identifier
    customer_id: Identifier
    text: Text
    status: NoteStatus
    author: Text = Field(description="The login of the key that wrote it.")
    created_at: Moment
    updated_at: Moment


class NoteReply(Assumed):
    """A reply to a note."""

    reply_id: Identifier
    note_id: Identifier
    customer_id: Identifier
    text: Text
    author: Text = Field(description="The login of the key that wrote it.")
    created_at: Moment


class CustomerAlert(Assumed):
    """What everybody must know who deals with a customer; a customer has one or none."""

    customer_id: Identifier
    message: Text
    severity: Severity
    author: Text = Field(description="The login of the key that wrote it.")
    updated_at: Moment


class PaymentMethod(Assumed):
    """A payment method that a customer has saved; a bank account has no brand and no expiry."""

    payment_method_id: Identifier
    customer_id: Identifier
    gateway_id: Identifier
    kind: MethodKind
    brand: str | None
    last4: str = Field(pattern="^[0-9]{4}$")
    expiry: str | None = Field(description="Year and month.")
    is_default: bool
    created_at: Moment


class PaymentLink(Assumed):
    """A link that a customer can pay by: towards invoices (applied), or towards none."""

    payment_link_id: Identifier
    kind: Literal["applied", "unapplied"]
    customer_id: Identifier
    invoice_ids: list[Identifier]
    amount: Amount
    currency: CurrencyCode
    description: str | None
    url: str = Field(json_schema_extra={"format": "uri"}, description="Leads nowhere here.")
    status: Literal["open"]
    created_at: Moment
    expires_at: Moment


class PaymentMethodRequest(Assumed):
    """A request to a customer to put a payment method on file."""

    payment_method_request_id: Identifier
    customer_id: Identifier
    kinds: list[MethodKind]
    message: str | None
    status: Literal["pending", "completed", "expired"]
    created_at: Moment
    expires_at: Moment


class Autoprocessing(Assumed):
    """When payments are collected by themselves."""

    enabled: bool
    day_of_month: int = Field(ge=1, le=28)
    retry_days: int = Field(ge=1)


class Reminders(Assumed):
    """When customers are reminded."""

    enabled: bool
    days_after_due: list[int]


class Settings(Assumed):
    """The settings of the organization."""

    organization_id: Identifier
    currency: CurrencyCode
    timezone: str
    locale: str
    autoprocessing: Autoprocessing
    reminders: Reminders
    updated_at: Moment


class Transaction(Assumed):
    """A payment or its way back; only a failed one has a reason."""

    transaction_id: Identifier
    customer_id: Identifier
    invoice_id: Identifier | None
    gateway_id: Identifier
    kind: Literal["charge", "refund"]
    status: Literal["succeeded", "failed", "pending"]
    amount: Amount
    currency: CurrencyCode
    created_at: Moment
    failure_reason: str | None = None


class User(Assumed):
    """A person who works for the organization."""

    user_id: Identifier
    name: Text
    email: EmailAddress
    mappings: list[str]
    status: Literal["active", "invited"]
    created_at: Moment
    last_seen_at: Moment | None


class Email(Assumed):
    """An email that was sent to a customer."""

    email_id: Identifier
    customer_id: Identifier
    to: EmailAddress
    kind: Literal["invoice", "reminder", "receipt", "payment_link"]
    subject: Text
    status: Literal["sent", "delivered", "bounced"]
    sent_at: Moment


class ForecastItem(Assumed):
    """A payment that will be collected by itself."""

    scheduled_on: Day
    customer_id: Identifier
    invoice_id: Identifier
    payment_method_id: Identifier
    amount: Amount
    currency: CurrencyCode


class Profile(Assumed):
    """Who the organization is."""

    organization_id: Identifier
    partner_id: Identifier
    name: Text
    contact_email: EmailAddress
    tax_id: str
    created_at: Moment
    address: Address | None = None
