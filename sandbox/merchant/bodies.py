"""The bodies that callers of the merchant surface send, validated as they are described.

Here: fields and their bounds; unknown fields are refused. All fields are assumed. Not here:
reading a body off the wire (body), whether what it names is there (the routes).
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from sandbox.records import Identifier, mark_assumed

MethodKind = Literal["card", "bank_account"]
NoteStatus = Literal["open", "resolved"]
Severity = Literal["info", "warning", "critical"]
# Something besides blanks; spelled out, because engines differ in what they take for a blank.
Words = Annotated[str, Field(max_length=2000, pattern="[^ \\t\\r\\n]")]
Remark = Annotated[str, Field(max_length=500)]
# More than nothing, with two decimals: the merchants' currencies have two.
Price = Annotated[str, Field(pattern=r"^([1-9][0-9]{0,9}\.[0-9]{2}|0\.(0[1-9]|[1-9][0-9]))$")]


def _whole(number: Any) -> Any:
    # JSON Schema calls 7.0 an integer.
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _unlike(items: list[Any]) -> list[Any]:
    if len(set(items)) < len(items):
        raise PydanticCustomError("unique", "The items must differ")
    return items


UNIQUE = (AfterValidator(_unlike), Field(json_schema_extra={"uniqueItems": True}))
Days = Annotated[int, Field(ge=1, le=365), BeforeValidator(_whole)]


class Body(BaseModel):
    """A body: exactly these fields."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, json_schema_extra=mark_assumed
    )


class NoteBody(Body):
    """A new note, or the new text of one."""

    text: Words


class ReplyBody(Body):
    """A new reply."""

    text: Words


class NoteStatusBody(Body):
    """The new status of a note."""

    status: NoteStatus


class AlertBody(Body):
    """The alert that a customer shall have."""

    message: Words
    severity: Severity


class UnappliedLinkBody(Body):
    """A payment link towards no invoice; the amount is in the organization's currency."""

    customer_id: Identifier
    amount: Price
    description: Remark | None = None
    expires_in_days: Days = 30


class AppliedLinkBody(Body):
    """A payment link towards what is due of invoices of one customer."""

    invoice_ids: Annotated[list[Identifier], Field(min_length=1, max_length=20), *UNIQUE]
    description: Remark | None = None
    expires_in_days: Days = 30


class MethodRequestBody(Body):
    """A request to a customer to put a payment method on file."""

    customer_id: Identifier
    kinds: Annotated[list[MethodKind], Field(min_length=1, max_length=2), *UNIQUE]
    message: Remark | None = None
    expires_in_days: Days = 14
