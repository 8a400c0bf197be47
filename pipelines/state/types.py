"""Column types that keep what they are given, where SQLite would not: times with their zone.

Also exact amounts, as text, and a proof, as JSON.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, String
from sqlalchemy.types import TypeDecorator

from pipelines.state import proof
from pipelines.state.proof import Proof

# Of rows that are as many as requests: 2^31 are 12 hours of 10,000 connections. SQLite counts
# by itself only what is called INTEGER, and that is as large.
Number = BigInteger().with_variant(Integer, "sqlite")


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


class Exact(TypeDecorator[Decimal]):
    """An amount, every digit of it (SQLite would make a float of it)."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> str | None:
        """Store it without an exponent."""
        del dialect
        return None if value is None else f"{value:f}"

    def process_result_value(self, value: str | None, dialect: Dialect) -> Decimal | None:
        """Give the amount back."""
        del dialect
        return None if value is None else Decimal(value)


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
