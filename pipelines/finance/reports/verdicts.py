"""Decides what the figures of a version prove, of each currency and altogether.

The page and `report --json` show these values and decide nothing; the notification of a version has
its totals, and why they are not proven.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from pipelines.finance.doubt import Doubt, sentences
from pipelines.finance.reports.alerts import Alerts, judge_alerts
from pipelines.finance.reports.amounts import Sums
from pipelines.finance.reports.changed_months import (
    MonthChanges,
    judge_changed_partner_months,
)
from pipelines.finance.reports.changes import (
    Changes,
    change_of,
    changed_difference,
    changes_since,
)
from pipelines.finance.reports.ledger import Ledger, read_as_ledger
from pipelines.finance.reports.month_verdicts import (
    Answer,
    MonthVerdict,
    judge_months,
    month_as_json,
    order_of,
)
from pipelines.finance.reports.partner_flux import Flux, due_months, judge_flux
from pipelines.finance.reports.prepared import Prepared
from pipelines.finance.reports.prices import Prices, judge_prices
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.to_be_paid import ToBePaid, judge_to_be_paid
from pipelines.warehouse.duckdb_file import Row

NOT_COMPLETE: Final = (
    "{name} is not proven complete. Rows may be missing, so amounts may change. Run "
    "`partner-sync sync`."
)
# The reason that query `reasons` gives to differences whose bills may still come.
NOT_DUE: Final = "not due yet"


@dataclass(frozen=True)
class CurrencyTotals:
    """The totals of a currency; `change` is that of the difference since the previous books.

    `unbilled` are the open breaks below zero, as a positive amount, `overbilled` those above zero.
    The difference is `overbilled` - `unbilled` + `other`.
    """

    currency: str | None
    used: Decimal
    billed: Decimal
    credit_notes: Decimal
    billed_net: Decimal
    difference: Decimal
    change: Decimal | None
    open_breaks: int
    unbilled: Decimal
    overbilled: Decimal
    other: Decimal

    def as_row(self) -> Row:
        """Return the totals that `report` prints and the notification names."""
        return {
            "currency": self.currency,
            "used": self.used,
            "billed": self.billed,
            "credit_notes": self.credit_notes,
            "difference": self.difference,
            "change": self.change,
            "open_breaks": self.open_breaks,
        }


@dataclass(frozen=True)
class Verdicts:
    """What is known of a version.

    `alerts` are what checks show of it.
    `problem` is why usage is not compared with billing; then there are no amounts. `doubts` and
    `not_complete` (lists that are compared) say why there may be other breaks. `open_breaks`
    are those of used and billed, counted by `severities`; `own_breaks`, with own books, are in no
    other number. `partners` have an open break, as have `unknown_partners`, which are in no list.
    `closed_months` begin with the newest; `prepared` months wait for approval. `changes` and
    `change_since_close` are None where the earlier books are not known. `changed_months` are those
    of partners; `flux` begins with the month that is settled. `ledger` is None where nobody knows
    what the journal accrues. `to_be_paid` is empty without what is still to be paid, and where the
    mapping does not say how to know.
    """

    version: int
    problem: str
    answer: Answer
    doubts: tuple[Doubt, ...]
    not_complete: tuple[str, ...]
    open_breaks: int
    own_breaks: int
    partners: int
    unknown_partners: int
    severities: dict[str, int]
    currencies: tuple[CurrencyTotals, ...]
    months: tuple[MonthVerdict, ...]
    closed_months: tuple[date, ...]
    prepared: tuple[Prepared, ...]
    last_closed_at: datetime | None
    alerts: Alerts
    changes: Changes | None
    change_since_close: Sums | None
    changed_months: MonthChanges
    flux: tuple[Flux, ...]
    prices: Prices
    ledger: Ledger | None
    to_be_paid: tuple[ToBePaid, ...]

    def posted_to(self) -> list[date]:
        """Return the months to which corrections of closed months are posted."""
        months: set[date] = set()
        for changed in self.alerts.changed_months:
            months.update(changed.posted_to)
        return sorted(months)

    def why_not_proven(self) -> list[str]:
        """Return why there may be other breaks, as sentences; none where nothing is compared."""
        if self.problem:
            return []
        reasons = sentences(self.doubts)
        for name in self.not_complete:
            reasons.append(NOT_COMPLETE.format(name=name))
        return reasons

    def totals(self) -> list[dict[str, Any]]:
        """Return the totals of each currency as `report` prints them."""
        return [currency.as_row() for currency in self.currencies]

    def as_json(self) -> dict[str, Any]:
        """Return the verdicts as `report --json` has them, without totals and doubts."""
        return {
            "answer": self.answer,
            "open_breaks": self.open_breaks,
            "own_breaks": self.own_breaks,
            "partners": self.partners,
            "unknown_partners": self.unknown_partners,
            "severities": self.severities,
            "not_complete": self.not_complete,
            "months": [
                month_as_json(month)
                | {"partners_with_new_prices": self.prices.partners(month.months)}
                for month in self.months
            ],
            "prepared": [asdict(month) for month in self.prepared],
            "changed_months": self.changed_months.as_json(),
            "flux": [flux.as_json() for flux in self.flux],
            "prices": self.prices.as_json(),
            "ledger": self.ledger.as_json() if self.ledger else None,
            "to_be_paid": [currency.as_json() for currency in self.to_be_paid],
        }


def judge(figures: Figures) -> Verdicts:
    """Return what the figures of a version prove."""
    tables = figures.tables
    doubts = () if figures.problem else tuple(figures.doubts)
    not_complete = _not_complete(tables["proofs"])
    is_known = is_all_known(figures)
    severities = tables["severities"]
    own_breaks = sum(row["own_source"] is not None for row in tables["open_breaks"])
    closed_months: tuple[date, ...] = ()
    last_closed_at = None
    if tables["last_close"]:
        (last_close,) = tables["last_close"]
        closed_months = tuple(reversed(last_close["months"]))
        last_closed_at = last_close["closed_at"]
    previous = figures.previous
    closed = figures.closed
    months = judge_months(figures, is_all_known=is_known)
    order = order_of(figures)
    ledger = _ledger(figures)
    return Verdicts(
        version=figures.version,
        problem=figures.problem,
        answer=_answer_of_version(figures, is_known=is_known and not doubts),
        doubts=doubts,
        not_complete=not_complete,
        open_breaks=len(tables["open_breaks"]) - own_breaks,
        own_breaks=own_breaks,
        partners=max((row["partners"] for row in severities), default=0),
        unknown_partners=max((row["unknown_partners"] for row in severities), default=0),
        severities={row["severity"]: row["breaks"] for row in severities},
        currencies=tuple(_totals(row, previous) for row in tables["currencies"]),
        months=months,
        closed_months=closed_months,
        prepared=figures.prepared,
        last_closed_at=last_closed_at,
        alerts=judge_alerts(figures),
        changes=changes_since(previous, figures) if previous else None,
        change_since_close=changed_difference(closed, figures) if closed else None,
        changed_months=judge_changed_partner_months(figures),
        flux=judge_flux(figures, months),
        prices=judge_prices(tables["price_changes"], order, due_months(figures)),
        ledger=ledger,
        to_be_paid=judge_to_be_paid(
            tables["to_be_paid"], ledger.may_withhold() if ledger else None
        ),
    )


def _ledger(figures: Figures) -> Ledger | None:
    if figures.accrual is None:
        return None
    tables = figures.tables
    # The month of the accrual is the one before the month of the data.
    not_due = [row for row in tables["reasons"] if row["place"] == 1 and row["reason"] == NOT_DUE]
    rule = figures.rules.get("receivables")
    withheld = tables["withheld"] if rule and rule["evaluated"] else None
    claims = tables["claims"]
    return read_as_ledger(figures.accrual, claims, withheld, not_due, order_of(figures))


def is_all_known(figures: Figures) -> bool:
    """Return whether every list that is compared is complete, and every check ran."""
    tables = figures.tables
    return not _not_complete(tables["proofs"]) and not tables["not_checked"]


def _not_complete(proofs: Iterable[Row]) -> tuple[str, ...]:
    open_lists = [proof for proof in proofs if proof["is_compared"] and not proof["complete"]]
    return tuple(f"{proof['connection']}/{proof['stream']}" for proof in open_lists)


def _answer_of_version(figures: Figures, *, is_known: bool) -> Answer:
    """Answer for the whole version."""
    if figures.problem:
        return Answer.NOT_COMPARED
    if figures.tables["open_breaks"]:
        return Answer.OPEN_BREAKS
    if not is_known:
        return Answer.NOT_PROVEN
    return Answer.NO_OPEN_BREAK


def _totals(row: Row, previous: Figures | None) -> CurrencyTotals:
    return CurrencyTotals(
        currency=row["currency"],
        used=row["used"],
        billed=row["billed"],
        credit_notes=row["credited"],
        billed_net=row["billed_net"],
        difference=row["difference"],
        change=change_of(previous, row) if previous else None,
        open_breaks=row["open_breaks"],
        unbilled=row["unbilled"],
        overbilled=row["overbilled"],
        other=row["other"],
    )
