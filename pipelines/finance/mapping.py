"""`config/mapping.toml`: which fields of usage and billing play which role in reconciliation.

The service does not document these fields, so none is assumed. A role without a field is unknown,
and what needs it is not evaluated.
"""

from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from pipelines.config import values
from pipelines.core.errors import ConfigurationError
from pipelines.finance.currencies import read_code
from pipelines.finance.own_mapping import OwnSource

# As the service sends it: period.start, lines[].usageId
FIELD_PATH = r"^[^.\[\]]+(\[\])?(\.[^.\[\]]+(\[\])?)*$"
Role = Annotated[str, Field(pattern=FIELD_PATH)] | None
Unit = Literal["major", "minor"]
# An amount that tables hold exactly, and that can be compared with any other.
Limit = Annotated[Decimal, Field(ge=0, max_digits=18, decimal_places=4)]
Materiality = Annotated[Decimal, Field(gt=0, max_digits=18, decimal_places=4)]
REMEDY = "Run `partner-sync mapping propose`, then `partner-sync mapping accept`."
# Of a bill without a status, as a value of other_statuses.
NO_STATUS = "no status"
# Words in the values of status and kind, in any case.
UNCOUNTED_WORDS = (
    "void|draft|cancel|delete|pending|reject|reverse"
    # What another document replaces, or announces.
    "|supersede|replaced|pro[ _-]?forma|preview|quote"
)
CREDIT_WORDS = "credit|refund"
PAID_STATUSES = "paid|paid[ _-]in[ _-]full|settled|cleared"  # the whole value
ORDINARY_WORDS = "invoice|bill"
UNIT_MEANING = (
    "minor: amounts and prices are in the smallest unit of the currency (EUR 0.01, JPY 1, KWD "
    "0.001); major: in euros, yen, dinars"
)


def _one_key_each(terms: dict[str, Any]) -> dict[str, Any]:
    """Refuse two spellings of a currency: each row of it would count twice."""
    first = dict[str | None, str]()
    for code in terms:
        other = first.setdefault(read_code(code), code)
        if other != code:
            raise ValueError(f"{other} and {code} are the same currency: keep one of them")
    return terms


ONE_KEY_EACH = AfterValidator(_one_key_each)


def _role(meaning: str, default: Any = None) -> Any:
    """Return a role with its meaning, which is a comment in the file."""
    return Field(default=default, description=meaning)


class PartnerRoles(values.Table):
    """Fields of the partner list, which is documented."""

    id: Role = _role("identifies a partner", "partnerId")
    name: Role = _role("name of the partner", "name")
    external_id: Role = _role("identifier of the partner in another system", "externalId")


class UsageRoles(values.Table):
    """Fields of a usage record."""

    id: Role = _role("identifies the record; lines of bills refer to it")
    partner: Role = _role("identifier of the partner")
    organization: Role = _role("organization that used it")
    period: Role = _role("date, time or month in which it was used")
    plan: Role = _role("plan or product")
    metric: Role = _role("what is counted")
    unit: Role = _role("unit in which it is counted")
    region: Role = _role("region in which it was used")
    quantity: Role = _role("quantity")
    price: Role = _role("price of one unit")
    amount: Role = _role("amount")
    currency: Role = _role("ISO 4217 code")
    amount_unit: Unit = _role(UNIT_MEANING, "major")
    recorded: Role = _role("when it was recorded")
    updated: Role = _role("when it was changed last")


class BillingRoles(values.Table):
    """Fields of a bill, and of its lines (`line_...`)."""

    id: Role = _role("identifies the bill")
    partner: Role = _role("identifier of the partner")
    organization: Role = _role("organization that used it")
    period: Role = _role("date, time or month that is billed")
    amount: Role = _role("total of the bill")
    currency: Role = _role("ISO 4217 code")
    amount_unit: Unit = _role(UNIT_MEANING, "major")
    issued: Role = _role("when it was issued")
    updated: Role = _role("when it was changed last")
    due: Role = _role("day on which it is to be paid")
    paid: Role = _role("when it was paid in full")
    open: Role = _role("amount that is still to be paid")
    tax: Role = _role("tax in its total")
    number: Role = _role("invoice number")
    status: Role = _role("status of the bill, see counted_statuses")
    counted_statuses: tuple[str, ...] = _role(
        "values of status that count as billed; others (void, draft) are shown apart", ()
    )
    other_statuses: tuple[str, ...] | None = _role(
        "values of status that are known and do not count; any other value is a finding"
    )
    paid_statuses: tuple[str, ...] = _role("values of status of bills that are paid in full", ())
    kind: Role = _role("kind of document, see credit_kinds")
    credit_kinds: tuple[str, ...] = _role(
        "values of kind that are credit notes, which are shown apart", ()
    )
    other_kinds: tuple[str, ...] | None = _role(
        "values of kind that are known and no credit notes; any other value is a finding"
    )
    line_usage: Role = _role("identifier of the usage record that a line bills")
    line_plan: Role = _role("plan or product of a line")
    line_metric: Role = _role("what a line counts")
    line_unit: Role = _role("unit in which a line counts")
    line_region: Role = _role("region that a line bills")
    line_quantity: Role = _role("quantity of a line")
    line_price: Role = _role("price of one unit on a line")
    line_amount: Role = _role("amount of a line")
    line_currency: Role = _role(
        "ISO 4217 code of a line; not compared if it is not that of its bill"
    )


class Terms(values.Table):
    """Tolerance of one currency or partner. What it does not say is as for all."""

    line_minor: int | None = Field(default=None, ge=0)
    line_percent: Decimal | None = Field(default=None, ge=0, le=100)
    month_minor: int | None = Field(default=None, ge=0)

    @property
    def line_share(self) -> Decimal | None:
        """The percentage as a share."""
        return None if self.line_percent is None else self.line_percent / 100


class Tolerance(values.Table):
    """Differences that are no breaks, in minor units of the currency (EUR 0.01, JPY 1)."""

    line_minor: int = Field(default=0, ge=0)
    """of one usage record and its line"""
    line_percent: Decimal = Field(default=Decimal(0), ge=0, le=100)
    """the same as a share of what was used, in percent; the larger one counts"""
    month_minor: int = Field(default=0, ge=0)
    """of a partner's month"""
    currency: Annotated[dict[str, Terms], ONE_KEY_EACH] = Field(default_factory=dict)
    """others for a currency: [tolerance.currency.EUR]"""
    partner: dict[str, Terms] = Field(default_factory=dict)
    """others for a partner by its identifier, which count first: [tolerance.partner."0001"]"""


Account = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]
Side = Literal["payable", "receivable"]
EntryKind = Literal["not_billed", "different", "correction"]


class OtherAccounts(values.Table):
    """Accounts of one kind or partner. What it does not say is as for all."""

    accrued: Account | None = None
    result: Account | None = None
    correction: Account | None = None
    rounding: Account | None = None


class Accounts(values.Table):
    """Accounts of the ledger for the journal of a closed month. Without them, there is none."""

    side: Side = _role("payable: what is billed is a cost; receivable: it is revenue", ...)
    accrued: Account = _role("usage that is not billed yet", ...)
    result: Account = _role("cost or revenue of the month", ...)
    correction: Account = _role("cost or revenue of months that are closed", ...)
    rounding: Account = _role("differences of rounding to minor units", ...)
    names: dict[Account, Account] = Field(default_factory=dict)
    """name of each account, for readers of report and working paper: [accounts.names]"""
    kind: dict[EntryKind, OtherAccounts] = Field(default_factory=dict)
    """others for a kind: [accounts.kind.different]"""
    partner: dict[str, OtherAccounts] = Field(default_factory=dict)
    """others for a partner by its identifier, which count first: [accounts.partner."0001"]"""


class AcceptedFee(values.Table):
    """Lines of bills that name no usage, and are right: [accepted_fees.support]."""

    field: Role = _role("field of a bill or of its lines; without one: every other line")
    values: tuple[str, ...] = _role(
        "values of the field, in any case and without spaces around", ()
    )
    reason: str = _role("why they are right, for readers of report and working paper", "")
    up_to: Annotated[dict[str, Limit], ONE_KEY_EACH] = _role(
        "sum of such lines of a bill that is accepted at most, by currency; none: any sum", {}
    )

    @model_validator(mode="after")
    def _require_a_limit(self) -> "AcceptedFee":
        if (self.field is None) != (not self.values):
            raise ValueError("field and values must be given together")
        if self.field is None and not self.up_to:
            raise ValueError("must have field and values, or up_to")
        return self


class Mapping(values.Table):
    """The whole file."""

    time_zone: ZoneInfo = ZoneInfo("UTC")
    """time zone in which a month begins"""
    grace_days: int = Field(default=1, ge=0, le=366)
    """days after a month in which its bills may still come"""
    partners: PartnerRoles = PartnerRoles()
    usage: UsageRoles = UsageRoles()
    billing: BillingRoles = BillingRoles()
    tolerance: Tolerance = Tolerance()
    accounts: Accounts | None = None
    materiality: Annotated[dict[str, Materiality], ONE_KEY_EACH] = Field(default_factory=dict)
    """amount from which on a break is high, by currency; medium from a tenth"""
    accepted_fees: dict[str, AcceptedFee] = Field(default_factory=dict)
    """lines of bills that name no usage, and are right, by their kind"""
    own: dict[values.ConnectionName, OwnSource] = Field(default_factory=dict)
    """books of your own that usage or billing is compared with, by their name"""

    @model_validator(mode="after")
    def _require_one_rest(self) -> "Mapping":
        of_the_rest = [kind for kind, fee in self.accepted_fees.items() if fee.field is None]
        if len(of_the_rest) > 1:
            raise ValueError(f"only one of accepted_fees may have no field: {of_the_rest[1]}")
        return self

    def material_amounts(self) -> dict[str | None, Decimal]:
        """Return the materiality of each currency by its code."""
        return {read_code(code): amount for code, amount in self.materiality.items()}

    def fee_reasons(self) -> dict[str, str]:
        """Return why each kind of accepted fees is right; empty where nobody says why."""
        return {kind: fee.reason.strip() for kind, fee in self.accepted_fees.items()}

    def fee_roles(self) -> dict[str, str]:
        """Return the kind of accepted fees whose field has each role: `billing.line_fee_0`.

        These roles are numbered, because kinds are any text.
        """
        roles = {}
        for number, (kind, fee) in enumerate(self.accepted_fees.items()):
            if fee.field is not None:
                name = "line_fee" if "[]" in fee.field else "fee"
                roles[f"billing.{name}_{number}"] = kind
        return roles

    def fields(self) -> dict[str, str]:
        """Return the field of every role that has one: `usage.amount` -> `amount`."""
        fields = {}
        for side in ("partners", "usage", "billing"):
            for role, path in getattr(self, side):
                if isinstance(path, str) and role != "amount_unit":
                    fields[f"{side}.{role}"] = path
        for role, kind in self.fee_roles().items():
            fields[role] = str(self.accepted_fees[kind].field)
        return fields


def read_mapping(file: Path) -> Mapping | None:
    """Return the mapping of a file; None without one. Raises ConfigurationError."""
    return mapping_of(values.read_content(file), file)


def mapping_of(content: bytes, file: Path) -> Mapping | None:
    """Return the mapping that the content of a file is; None if it is empty.

    Raises ConfigurationError.
    """
    tables = values.parse_toml(file, content)
    if not tables:
        return None
    return values.validate(TypeAdapter(Mapping), tables, file, f"Correct {file}. {REMEDY}")


def parse_mapping(text: str) -> Mapping:
    """Return the mapping that books or a copy keep as text. Raises ConfigurationError.

    Books also keep the text of a mapping that is wrong; nothing is evaluated by it.
    """
    mapping = mapping_of(text.encode(), Path("mapping.toml"))
    if mapping is None:
        raise ConfigurationError("The mapping is empty: no amount can be read.", REMEDY)
    return mapping


def mapping_digest(file: Path) -> str:
    """Return a digest of a mapping file, right or wrong; empty without one.

    Of a file that cannot be read, it is the reason.
    """
    try:
        return content_digest(values.read_content(file))
    except ConfigurationError as error:
        return str(error)


def content_digest(content: bytes) -> str:
    """Return the digest of the content of a mapping file; empty without any."""
    return sha256(content).hexdigest() if content else ""
