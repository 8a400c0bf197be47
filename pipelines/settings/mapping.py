"""`config/mapping.toml`: which fields mean what, for reconciliation; written by a person.

Here: reading it, every wrong value named by table and field. A role that is not mapped stays
unknown: what needs it is "not evaluated". Not here: the columns behind the paths (warehouse.roles),
the proposal (run).
"""

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import ConfigurationError
from pipelines.settings.values import Zone

FILE = "mapping.toml"
KEYS = ("partner", "month", "currency", "plan", "organization")
# As the service sends it: period.start, or lines[].usageId of each item of an array.
Field_ = Annotated[str, Field(pattern=r"^[^.\[\]]+(\[\])?(\.[^.\[\]]+(\[\])?)*$")]
Role = Field_ | None
Key = Literal["usage", "partner", "month", "currency", "plan", "organization"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Partners(_Table):
    """The roles of the list of partners."""

    stream: str = "partners"
    id: Role = None
    name: Role = None
    external_id: Role = None


class Usage(_Table):
    """The roles of what was used; `period` is a date or a time in it."""

    stream: str = "usage"
    id: Role = None
    partner: Role = None
    organization: Role = None
    period: Role = None
    plan: Role = None
    metric: Role = None
    quantity: Role = None
    price: Role = None
    amount: Role = None
    currency: Role = None
    recorded: Role = None
    updated: Role = None


class Billing(_Table):
    """The roles of what was billed, of a bill and of its lines."""

    stream: str = "billing"
    id: Role = None
    partner: Role = None
    organization: Role = None
    period: Role = None
    amount: Role = None
    currency: Role = None
    issued: Role = None
    updated: Role = None
    number: Role = None
    kind: Role = None
    line_usage: Role = None
    line_plan: Role = None
    line_quantity: Role = None
    line_price: Role = None
    line_amount: Role = None


class Match(_Table):
    """What makes a used row and a billed line the same: `usage`, or what both have."""

    keys: tuple[Key, ...] = ()


class Tolerance(_Table):
    """What is no break: of a line and of a partner's month, in minor units of the currency.

    A break of `material_minor` or more is one step more severe.
    """

    line_minor: Annotated[int, Field(ge=0)] = 0
    line_percent: Annotated[Decimal, Field(ge=0, le=100)] = Decimal(0)
    month_minor: Annotated[int, Field(ge=0)] = 0
    material_minor: Annotated[int, Field(ge=0)] = 100_000


class Mapping(_Table):
    """The whole file; `grace_days` is how long after a month its bills may still come."""

    time_zone: Zone = "UTC"
    grace_days: Annotated[int, Field(ge=0, le=366)] = 1
    partners: Partners = Partners()
    usage: Usage = Usage()
    billing: Billing = Billing()
    match: Match = Match()
    tolerance: Tolerance = Tolerance()

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """By what used rows and billed lines are matched."""
        if self.match.keys:
            return self.match.keys
        if self.billing.line_usage and self.usage.id:
            return ("usage",)
        own = {"partner", "month", "currency"}
        return tuple(key for key in KEYS if key in own)


@dataclass(frozen=True)
class Mapped:
    """A mapping as it was read; `digest` is the SHA-256 of its file, empty where there is none.

    `fault` says what is wrong with it: then nothing of it counts.
    """

    mapping: Mapping
    digest: str = ""
    fault: str = ""


NOTHING = Mapped(Mapping())


def load(config: Path) -> Mapped:
    """Read the mapping of a home's `config`; raise ConfigurationError for what is wrong in it."""
    file = config / FILE
    if not file.exists():
        return NOTHING
    try:
        content = file.read_bytes()
        return Mapped(parsed(content.decode(), FILE), sha256(content).hexdigest())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None


def read(config: Path) -> Mapped:
    """Read the mapping as `load` does; one that is wrong maps nothing, and has a fault."""
    try:
        return load(config)
    except ConfigurationError as error:
        return Mapped(Mapping(), sha256(str(error).encode()).hexdigest(), str(error))


def parsed(text: str, name: str) -> Mapping:
    """Read a mapping's text; `name` is what the errors call it."""
    try:
        given: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: {error}") from None
    try:
        return Mapping.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        words = "no such role" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigurationError(f"{name}, {where}: {words}") from None
