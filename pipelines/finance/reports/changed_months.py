"""Which months of partners changed: used, billed and their difference, each before and after.

Before is the close of a closed month, and the previous books of any other. Here: which rows the
page and `report --json` show. Not here: which records changed (`finance.changes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.queries import Figures
from pipelines.warehouse.duckdb_file import Row

SHOWN: Final = 8  # months of partners


@dataclass(frozen=True)
class Amounts:
    """What a partner used and was billed in a month, with credit notes."""

    used: Decimal
    billed: Decimal

    @property
    def difference(self) -> Decimal:
        """Billed minus used."""
        return EXACT.subtract(self.billed, self.used)

    def as_json(self) -> dict[str, Decimal]:
        """Return them for `report --json`."""
        return {"used": self.used, "billed": self.billed, "difference": self.difference}


@dataclass(frozen=True)
class MonthChange:
    """A partner's month that changed; `closed_at` is None where it is not closed."""

    connection: str
    partner: str | None
    name: str | None
    month: date | None
    currency: str | None
    closed_at: datetime | None
    before: Amounts
    now: Amounts

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`."""
        return {
            "connection": self.connection,
            "partner": self.name or self.partner,
            "partner_id": self.partner,
            "month": f"{self.month:%Y-%m}" if self.month else None,
            "currency": self.currency,
            "closed_at": self.closed_at,
            "before": self.before.as_json(),
            "now": self.now.as_json(),
        }


@dataclass(frozen=True)
class MonthChanges:
    """The partners' months that changed, restated closed months first, then the largest changes.

    `total` counts all of them, `closed` those of closed months.
    """

    rows: tuple[MonthChange, ...]
    total: int
    closed: int

    @property
    def left_out(self) -> int:
        """How many are not in `rows`."""
        return self.total - len(self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return them for `report --json`: what the page shows."""
        return {
            "rows": [row.as_json() for row in self.rows],
            "total": self.total,
            "closed": self.closed,
        }


def judge_changed_partner_months(figures: Figures) -> MonthChanges:
    """Return which months of partners changed."""
    rows = figures.tables["changed_months"]
    closed = sum(row["closed_at"] is not None for row in rows)
    return MonthChanges(_changes(rows[:SHOWN]), len(rows), closed)


def _changes(rows: Sequence[Row]) -> tuple[MonthChange, ...]:
    changes = []
    for row in rows:
        since_close = row["closed_at"] is not None
        used = row["used_since"] if since_close else row["used_change"]
        billed = row["billed_since"] if since_close else row["billed_change"]
        before = Amounts(
            EXACT.subtract(row["used"], used),
            EXACT.subtract(row["billed"], billed),
        )
        changes.append(
            MonthChange(
                connection=row["connection"],
                partner=row["partner"],
                name=row["name"],
                month=row["month"],
                currency=row["currency"],
                closed_at=row["closed_at"],
                before=before,
                now=Amounts(row["used"], row["billed"]),
            )
        )
    return tuple(changes)
