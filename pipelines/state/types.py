"""Column types that keep what they are given, where SQLite would not: times with their zone."""

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect
from sqlalchemy.types import TypeDecorator


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
