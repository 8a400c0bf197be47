"""Column types that keep what they are given, where SQLite would not: times with their zone.

Also a proof, as JSON.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect
from sqlalchemy.types import TypeDecorator

from pipelines.state import proof
from pipelines.state.proof import Proof


class UtcTime(TypeDecorator[datetime]):
    """An aware time, stored in UTC (SQLite's own DateTime forgets the zone)."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time and store the UTC reading of an aware one."""
        del dialect
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the ledger takes aware times only")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the zone back."""
        del dialect
        return None if value is None else value.replace(tzinfo=UTC)


class ProofJson(TypeDecorator[Proof]):
    """What was proven of a list."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Proof | None, dialect: Dialect) -> Any:
        """Store JSON values."""
        del dialect
        return None if value is None else proof.to_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Proof | None:
        """Give the proof back."""
        del dialect
        return None if value is None else proof.from_json(value)
