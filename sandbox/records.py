"""The schemas of everything served, for the interface description alone.

Here: fields, types and what they mean; fields that the interface does not show are ``x-assumed``.
Not here: serialization. Records are written as bytes (data), so these models are never filled,
and money is ``float`` only in the sense of JSON's number: its digits are exact decimals.
"""

from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sandbox.access import Actor

# The interface does not state where exactly the total sits.
PLACED: dict[str, Any] = {"x-assumed-place": True}
Item = TypeVar("Item", bound=BaseModel)

ID_PATTERN = "^[0-9a-f]{24}$"
Identifier = Annotated[str, Field(pattern=ID_PATTERN)]
Number = Annotated[float, Field(description="Exact decimal, do not read it as a binary float.")]
Amount = Annotated[str, Field(pattern=r"^(0|[1-9]\d*)(\.\d+)?$", description="Exact decimal.")]
Signed = Annotated[str, Field(pattern=r"^-?(0|[1-9]\d*)(\.\d+)?$", description="Exact decimal.")]
CurrencyCode = Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217.")]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Day = Annotated[str, Field(json_schema_extra={"format": "date"})]


def mark_assumed(schema: dict[str, Any]) -> None:
    """Mark every property of an object as assumed."""
    for field in schema["properties"].values():
        field["x-assumed"] = True


class Shown(BaseModel):
    """An object whose fields the interface shows."""

    model_config = ConfigDict(alias_generator=to_camel, serialize_by_alias=True)


class Assumed(Shown):
    """An object whose fields the interface does not show."""

    model_config = ConfigDict(json_schema_extra=mark_assumed)


class Pagination(BaseModel):
    """Paging metadata."""

    limit: int = Field(ge=1, description="Page size used for the response.")
    offset: int = Field(ge=0, description="Offset of the page.")
    has_more: bool = Field(description="True when more items exist beyond this page.")
    next_offset: int | None = Field(description="Offset of the next page; null on the last page.")
    prev_offset: int | None = Field(
        description="Offset of the previous page; null on the first page."
    )


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    data: list[Item] = Field(description="Items of the page.")
    pagination: Pagination


class CountedPage(Page[Item], Generic[Item]):
    """One page of a list that tells how many items match across all pages."""

    total: int = Field(ge=0, description="Count across all pages.", json_schema_extra=PLACED)


class Whoami(Assumed):
    """The caller, as its token describes it."""

    actor: Actor
    subject: str
    scopes: list[str]
    audience: str


class Partner(Shown):
    """A partner."""

    partner_id: Identifier = Field(description="Opaque identifier.")
    name: str
    external_id: str


class Plan(Assumed):
    """What is metered and at which price."""

    plan_id: Identifier
    name: str
    metric: str
    unit_price: Number
    active: bool
    created_at: Moment
    description: str | None = None


class Address(Assumed):
    """A postal address."""

    line1: str
    city: str
    postal_code: str
    country: str = Field(description="ISO 3166-1 alpha-2.")


class Organization(Assumed):
    """An organization of a partner."""

    organization_id: Identifier
    partner_id: Identifier
    name: str
    status: str
    created_at: Moment
    address: Address | None = None


class UsagePeriod(Assumed):
    """The hour that was metered, each time with the offset of where it happened."""

    start: Moment
    end: Moment


class UsageEvent(Assumed):
    """Something that happened in the metered hour."""

    kind: str
    at: Moment
    units: int
    fee: Number


class Usage(Assumed):
    """One metered quantity; amount is quantity times unitPrice, rounded half-even."""

    usage_id: Identifier
    partner_id: Identifier
    organization_id: Identifier
    plan_id: Identifier
    metric: str
    quantity: int = Field(ge=0)
    unit_price: Number
    amount: Amount
    currency: CurrencyCode
    period: UsagePeriod
    recorded_at: Moment
    updated_at: Moment
    sequence: int = Field(json_schema_extra={"format": "int64"}, description="May be above 2^53.")
    reference: str
    events: list[UsageEvent]
    note: str | None = None
    revision: int = Field(ge=1)


class BillingPeriod(Assumed):
    """The month that is billed, both days included."""

    start: Day
    end: Day


class BillingLine(Assumed):
    """The charge of one usage row, tax included."""

    usage_id: Identifier
    quantity: int
    unit_price: Number
    amount: Signed
    description: str


class Credit(Assumed):
    """Granted towards the next period: no part of this record's total."""

    reason: str
    amount: Amount
    applies_to: str


class Billing(Assumed):
    """A bill: the lines add up to the total, and so do subtotal and tax.

    A credit note has a negative total.
    """

    billing_id: Identifier
    partner_id: Identifier
    invoice_number: str
    period: BillingPeriod
    currency: CurrencyCode
    issued_at: Moment
    due_at: Day
    subtotal: Number
    tax: Signed
    total: Signed
    status: str = Field(description="A bill counts unless it is void, draft or cancelled.")
    kind: str | None = Field(None, description="invoice or credit_note.")
    lines: list[BillingLine]
    credit: Credit | None = None
    revision: int = Field(ge=1)
    updated_at: Moment


class TokenRequest(BaseModel):
    """The client credentials grant, as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    client_id: str
    client_secret: str
    audience: str = Field(description="The API identifier.")
    grant_type: str = Field(description="The value client_credentials.")


class Token(BaseModel):
    """The token response."""

    access_token: str = Field(description="A JWT, the bearer credential.")
    token_type: str = Field(description="Bearer.")
    expires_in: int = Field(description="Lifetime in seconds.")


class TokenRefusal(Assumed):
    """A refused token request (RFC 6749, section 5.2)."""

    model_config = ConfigDict(alias_generator=None)

    error: str
    error_description: str


class Health(Assumed):
    """The state of the process."""

    status: str


class Problem(BaseModel):
    """A failure (RFC 7807)."""

    type: str = Field(
        description="{base_url}/problems/<slug>. Slugs other than unauthorized and "
        "too_many_requests are assumed: the status's title in snake case.",
        json_schema_extra={"format": "uri"},
    )
    title: str = Field(description="Short status title.")
    status: int
    detail: str = Field(description="Human-readable explanation.")
    instance: str = Field(description="Request path that failed.")


class ParameterFault(Assumed):
    """What is wrong with one parameter, or with one field of the body."""

    place: str = Field(alias="in", description="query or body.")
    field: str = Field(description="Its name; empty where the whole body is wrong.")
    detail: str


class ParameterProblem(Problem):
    """A request whose parameters or body are not as described."""

    errors: list[ParameterFault] = Field(json_schema_extra={"x-assumed": True})


class RateLimitProblem(Problem):
    """A refusal by the rate limit."""

    retry_after_seconds: int
