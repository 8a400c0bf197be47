"""Types of fields that settings declare: `[streams.usage.types]`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pipelines.config import values

TypeName = Literal[
    "text", "integer", "decimal", "boolean", "date", "time", "epoch_seconds", "epoch_milliseconds",
    "json",
]  # fmt: skip


class DeclaredType(values.Table):
    """The type of one field: its name, and for days and times how they are spelled."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    type: TypeName
    format: str | None = None
    """spelling of a date or time, as Python's strptime reads it, such as %m/%d/%Y %H:%M"""
    zone: ZoneInfo | None = None
    """time zone of times that are spelled without one"""

    @model_validator(mode="after")
    def check(self) -> "DeclaredType":
        """Refuse what does not go together."""
        if self.format is not None:
            self._check_format(self.format)
        if self.zone is not None and self.type != "time":
            raise ValueError("zone is for the type time")
        return self

    def _check_format(self, form: str) -> None:
        if self.type not in {"date", "time"}:
            raise ValueError("format is for the types date and time")
        try:
            read = datetime.strptime(SAMPLE.strftime(form), form)  # noqa: DTZ007
        except ValueError:
            raise ValueError("format must be one that Python's strptime reads") from None
        if read.date() != SAMPLE.date():
            raise ValueError("format must have a day, a month and a year")
        if read.hour not in {0, SAMPLE.hour}:
            raise ValueError("a format with %I needs %p")
        # strptime reads names of zones, and then takes the time for one of any zone.
        if "%Z" in form.replace("%%", ""):
            raise ValueError("format must not have %Z: use %z, or zone")
        if self.type == "time" and self.zone is None and "%z" not in form:
            raise ValueError("a format without %z needs a zone, such as America/New_York")


def _named(given: Any) -> Any:
    return {"type": given} if isinstance(given, str) else given


SAMPLE = datetime(2026, 9, 30, 13, 5, tzinfo=ZoneInfo("UTC"))
Declared = Annotated[DeclaredType, BeforeValidator(_named), Field()]
