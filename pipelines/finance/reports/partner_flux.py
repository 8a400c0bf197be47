"""Why the newest months of partners are not like the ones before, of usage and of bills.

Here: which rows the page and `report --json` show, and what the others add up to. Not here: how a
difference is split (`flux_items.sql` of reconciliation).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.listings import PARTS
from pipelines.finance.reports.month_verdicts import Answer, MonthVerdict
from pipelines.finance.reports.queries import Figures
from pipelines.warehouse.duckdb_file import Row

SIDES: Final = {"usage": "used", "billing": "billed"}
SHOWN: Final = 3  # partners of each currency and side
CURRENCIES: Final = 4  # as many as have a chart at least


@dataclass(frozen=True)
class FluxRow:
    """Why an amount is not that of the month before. `partner` is None for all of them.

    `parts` are those that are not 0, by their name in `finance.flux`; all add up to `difference`.
    `history_from`: what is late or restated is not known, as history begins then. `new_items` is
    the part of `volume` of plans and metrics that the month before has not.
    """

    connection: str | None
    partner: str | None
    name: str | None
    before: Decimal
    now: Decimal
    difference: Decimal
    parts: dict[str, Decimal]
    new_items: Decimal
    history_from: datetime | None

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`."""
        return {
            "connection": self.connection,
            "partner": self.name or self.partner,
            "partner_id": self.partner,
            "before": self.before,
            "now": self.now,
            "difference": self.difference,
            "parts": self.parts,
            "new_items": self.new_items,
            "history_from": self.history_from,
        }


@dataclass(frozen=True)
class FluxTable:
    """The partners of a currency and side (used, billed) with the largest changes.

    `left_out` of them are not in `rows`; their differences add up to `left_out_difference`.
    """

    currency: str | None
    side: str
    total: FluxRow
    rows: tuple[FluxRow, ...]
    left_out: int
    left_out_difference: Decimal

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`."""
        return {
            "currency": self.currency,
            "side": self.side,
            "total": self.total.as_json(),
            "partners": [row.as_json() for row in self.rows],
            "other_partners": self.left_out,
            "other_difference": self.left_out_difference,
        }


@dataclass(frozen=True)
class Flux:
    """Why `month` is not like the one before; `left_out` currencies have no table."""

    month: date
    tables: tuple[FluxTable, ...]
    left_out: int

    @property
    def month_before(self) -> date:
        """The first day of the month before."""
        return (self.month - timedelta(days=1)).replace(day=1)

    @property
    def history_from(self) -> datetime | None:
        """Since when all that is shown has a history; None: longer than it needs."""
        moments = (table.total.history_from for table in self.tables)
        return max(filter(None, moments), default=None)

    def as_json(self) -> dict[str, Any]:
        """Return it for `report --json`: what the page shows."""
        return {
            "month": f"{self.month:%Y-%m}",
            "tables": [table.as_json() for table in self.tables],
            "other_currencies": self.left_out,
        }


def due_months(figures: Figures) -> list[date]:
    """Return the newest months whose bills are due everywhere, at most three, the newest first."""
    return list(dict.fromkeys(row["month"] for row in figures.tables["flux"]))


def judge_flux(figures: Figures, months: Sequence[MonthVerdict]) -> tuple[Flux, ...]:
    """Return why the newest month whose bills are due is not like the one before; none without one.

    If that month is not signed off and not proven, the newest one that is comes first.
    """
    due = due_months(figures)
    settled = {verdict.month for verdict in months if _is_settled(verdict)}
    shown = [month for month in due if month in settled][:1]
    if due and due[0] not in shown:
        shown.append(due[0])
    rows = figures.tables["flux"]
    return tuple(_flux(month, [row for row in rows if row["month"] == month]) for month in shown)


def _is_settled(verdict: MonthVerdict) -> bool:
    """Return whether a month is signed off, or nothing of it may be missing."""
    is_whole = verdict.answer is not Answer.NOT_PROVEN and verdict.usage_until is None
    return verdict.closed_at is not None or is_whole


def _flux(month: date, rows: Sequence[Row]) -> Flux:
    tables: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows:
        tables.setdefault((row["currency"], row["side"]), []).append(row)
    currencies = list(dict.fromkeys(currency for currency, _side in tables))
    shown = []
    for (currency, side), of_table in tables.items():
        if currency in currencies[:CURRENCIES]:
            shown.append(_table(currency, SIDES[side], of_table))
    return Flux(month, tuple(shown), max(0, len(currencies) - CURRENCIES))


def _table(currency: str | None, side: str, rows: Sequence[Row]) -> FluxTable:
    """Return the table of rows of a currency and side, which begin with the largest change."""
    left_out = rows[SHOWN:]
    return FluxTable(
        currency=currency,
        side=side,
        total=_total(rows),
        rows=tuple(_row(row) for row in rows[:SHOWN]),
        left_out=len(left_out),
        left_out_difference=_sum(left_out, "difference"),
    )


def _row(row: Row) -> FluxRow:
    parts = {name: row[name] for name in PARTS if row[name]}
    return FluxRow(
        connection=row["connection"],
        partner=row["partner"],
        name=row["name"],
        before=row["amount_before"],
        now=row["amount"],
        difference=row["difference"],
        parts=parts,
        new_items=row["new_items"],
        history_from=row["history_from"],
    )


def _total(rows: Sequence[Row]) -> FluxRow:
    """Return the row of all partners."""
    parts = {}
    for name in PARTS:
        amount = _sum(rows, name)
        if amount:
            parts[name] = amount
    known = [row["history_from"] for row in rows if row["history_from"] is not None]
    return FluxRow(
        connection=None,
        partner=None,
        name=None,
        before=_sum(rows, "amount_before"),
        now=_sum(rows, "amount"),
        difference=_sum(rows, "difference"),
        parts=parts,
        new_items=_sum(rows, "new_items"),
        history_from=max(known, default=None),
    )


def _sum(rows: Sequence[Row], name: str) -> Decimal:
    """Return the exact sum of a column; what is not known adds nothing."""
    total = Decimal(0)
    for row in rows:
        total = EXACT.add(total, row[name] or Decimal(0))
    return total
