"""Decides what the figures of a version prove: of each month, of each currency, and altogether.

The page, `report --json` and the notification of a version show these values and decide nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pipelines.finance.doubt import Doubt
from pipelines.finance.reports.amounts import Sums, add_up
from pipelines.finance.reports.changes import (
    Changes,
    change_of,
    changed_difference,
    changes_since,
)
from pipelines.finance.reports.queries import Figures
from pipelines.warehouse.duckdb_file import Row

OPEN_BREAKS = "open breaks"  # the reason of what the query `reasons` adds from open breaks


class Answer(StrEnum):
    """Whether billing agrees with usage, in a month or in the whole version."""

    NOT_COMPARED = "not compared"
    OPEN_BREAKS = "open breaks"
    NOT_PROVEN = "not proven"
    BALANCED = "balanced"
    NO_OPEN_BREAK = "no open break"
    NO_OPEN_BREAK_SO_FAR = "no open break so far"
    NO_AMOUNTS = "no amounts"


class SignOff(StrEnum):
    """Whether a month is signed off, and whether it is as it was then.

    `SIGNED_OFF`: no change is known, and nobody can say that there is none.
    """

    IN_PROGRESS = "in progress"
    NOT_SIGNED_OFF = "not signed off"
    REOPENED = "reopened"
    SIGNED_OFF = "signed off"
    UNCHANGED = "signed off, unchanged since"
    CHANGED = "signed off, changed since"


@dataclass(frozen=True)
class MonthVerdict:
    """What is known of a month, or of all other months with the same sign-off.

    `month` is None of several months, `months` are all of them; one may be None: no month. `open`
    is the part of `difference` in open breaks, `reasons` have the rest. `difference` leaves out
    currencies without one. `without_amounts` are the currencies without usage and bills: of a
    month, and of several if no currency has any.
    """

    month: date | None
    months: tuple[date | None, ...]
    sign_off: SignOff
    closed_at: datetime | None
    changed_records: int
    answer: Answer
    open_breaks: int
    has_amounts: bool
    difference: Sums
    open: Sums
    reasons: dict[str, Sums]
    without_amounts: tuple[str | None, ...]


@dataclass(frozen=True)
class ChangedMonth:
    """A closed month that is not as it was signed off; amounts are changes since then.

    `posted_to` are the months to which its corrections are posted. `sides` has the changes of each
    currency with one: used and billed.
    """

    month: date
    closed_at: datetime
    preparer: str
    reviewer: str
    changed_records: int
    posted_to: tuple[date, ...]
    sides: dict[str | None, dict[str, Decimal]]
    difference: Sums


@dataclass(frozen=True)
class CurrencyTotals:
    """The totals of a currency; `change` is that of the difference since the previous books."""

    currency: str | None
    used: Decimal
    billed: Decimal
    credit_notes: Decimal
    billed_net: Decimal
    difference: Decimal
    change: Decimal | None
    open_breaks: int
    open: Decimal
    in_no_open_break: Decimal


@dataclass(frozen=True)
class Verdicts:
    """What is known of a version.

    `problem` is why usage is not compared with billing; then there are no amounts. `doubts` and
    `not_complete` (lists that are compared) say why there may be other breaks. `partners` have an
    open break, `severities` count breaks. `closed_months` begin with the newest. `changes` and
    `change_since_close` are None where the earlier books are not known.
    """

    version: int
    problem: str
    answer: Answer
    doubts: tuple[Doubt, ...]
    not_complete: tuple[str, ...]
    open_breaks: int
    partners: int
    severities: dict[str, int]
    currencies: tuple[CurrencyTotals, ...]
    months: tuple[MonthVerdict, ...]
    closed_months: tuple[date, ...]
    last_closed_at: datetime | None
    changed_months: tuple[ChangedMonth, ...]
    changes: Changes | None
    change_since_close: Sums | None

    def posted_to(self) -> list[date]:
        """Return the months to which corrections of closed months are posted."""
        return sorted({month for changed in self.changed_months for month in changed.posted_to})

    def totals(self) -> list[dict[str, Any]]:
        """Return the totals of each currency as `report` prints them."""
        return [
            {
                "currency": each.currency,
                "used": each.used,
                "billed": each.billed,
                "credit_notes": each.credit_notes,
                "difference": each.difference,
                "change": each.change,
                "open_breaks": each.open_breaks,
            }
            for each in self.currencies
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the verdicts as `report --json` has them, without totals and doubts."""
        return {
            "answer": self.answer,
            "open_breaks": self.open_breaks,
            "partners": self.partners,
            "severities": self.severities,
            "not_complete": self.not_complete,
            "months": [_month_as_json(month) for month in self.months],
        }


def judge(figures: Figures) -> Verdicts:
    """Return what the figures of a version prove."""
    tables = figures.tables
    doubts = () if figures.problem else tuple(figures.doubts)
    not_complete = _not_complete(tables["proofs"])
    is_all_known = not not_complete and not tables["not_checked"]
    last_close = next(iter(tables["last_close"]), None)
    previous = figures.previous
    closed = figures.closed
    severities = tables["severities"]
    return Verdicts(
        version=figures.version,
        problem=figures.problem,
        answer=_answer(figures, is_known=is_all_known and not doubts),
        doubts=doubts,
        not_complete=not_complete,
        open_breaks=len(tables["open_breaks"]),
        partners=severities[0]["partners"] if severities else 0,
        severities={row["severity"]: row["breaks"] for row in severities},
        currencies=tuple(_totals(row, previous) for row in tables["currencies"]),
        months=judge_months(figures, is_all_known=is_all_known),
        closed_months=tuple(reversed(last_close["months"])) if last_close else (),
        last_closed_at=last_close["closed_at"] if last_close else None,
        changed_months=_changed_months(tables["changed_closes"], order_of(figures)),
        changes=changes_since(previous, figures) if previous else None,
        change_since_close=changed_difference(closed, figures) if closed else None,
    )


def judge_months(figures: Figures, *, is_all_known: bool) -> tuple[MonthVerdict, ...]:
    """Return a verdict for each place of the query `recent` that has something to say."""
    places: dict[int, list[Row]] = defaultdict(list)
    for cell in figures.tables["recent"]:
        places[cell["place"]].append(cell)
    reasons: dict[int | None, list[Row]] = defaultdict(list)
    for row in figures.tables["reasons"]:
        reasons[row["place"]].append(row)
    order = order_of(figures)
    verdicts = []
    for place, cells in sorted(places.items()):
        verdict = _judge_month(cells, reasons[place], order, is_all_known=is_all_known)
        is_empty = verdict.answer is Answer.NO_AMOUNTS and not verdict.changed_records
        if verdict.month or not is_empty:
            verdicts.append(verdict)
    return tuple(verdicts)


def order_of(figures: Figures) -> list[str | None]:
    """Return the currencies in the order in which every part of the report has them."""
    return [row["currency"] for row in figures.tables["currencies"]]


def sums_by_reason(rows: Iterable[Row], order: Sequence[str | None]) -> dict[str, Sums]:
    """Return the sums of each reason, in the order of the rows."""
    by_reason: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_reason[row["reason"]].append(row)
    return {reason: add_up(found, order, "number") for reason, found in by_reason.items()}


def _not_complete(proofs: Iterable[Row]) -> tuple[str, ...]:
    return tuple(
        f"{row['connection']}/{row['stream']}"
        for row in proofs
        if row["is_compared"] and not row["complete"]
    )


def _answer(figures: Figures, *, is_known: bool) -> Answer:
    """Answer for the whole version."""
    if figures.problem:
        return Answer.NOT_COMPARED
    if figures.tables["open_breaks"]:
        return Answer.OPEN_BREAKS
    return Answer.NO_OPEN_BREAK if is_known else Answer.NOT_PROVEN


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
        open=row["open"],
        in_no_open_break=row["other"],
    )


def _judge_month(
    cells: Sequence[Row], reasons: Sequence[Row], order: Sequence[str | None], *, is_all_known: bool
) -> MonthVerdict:
    """Return the verdict of one place: a row for each currency, and the parts of the difference."""
    any_cell = cells[0]  # what is not an amount is the same for all currencies
    with_amounts = [cell for cell in cells if cell["difference"] is not None]
    is_known = is_all_known and not any(cell["is_doubtful"] for cell in cells)
    open_parts = [row for row in reasons if row["reason"] == OPEN_BREAKS]
    others = [row for row in reasons if row["reason"] != OPEN_BREAKS]
    without_amounts = {cell["currency"] for cell in cells if cell["difference"] is None}
    if with_amounts and not any_cell["month"]:
        without_amounts = set()
    return MonthVerdict(
        month=any_cell["month"],
        months=tuple(any_cell["months"]),
        sign_off=_sign_off(any_cell, is_known=is_known),
        closed_at=any_cell["closed_at"],
        changed_records=any_cell["changed_records"] or 0,
        answer=_answer_of_month(with_amounts, reasons, is_known=is_known),
        open_breaks=sum(row["number"] for row in open_parts),
        has_amounts=bool(with_amounts),
        difference=add_up((cell for cell in with_amounts if cell["difference"]), order),
        open=add_up(open_parts, order, "number"),
        reasons=sums_by_reason(others, order),
        without_amounts=tuple(each for each in order if each in without_amounts),
    )


def _answer_of_month(
    with_amounts: Sequence[Row], reasons: Sequence[Row], *, is_known: bool
) -> Answer:
    """Answer for a month: it is balanced only if it is over, and if nothing is left to explain."""
    if any(row["reason"] == OPEN_BREAKS for row in reasons):
        return Answer.OPEN_BREAKS
    if not with_amounts:
        return Answer.NO_AMOUNTS
    if not is_known:
        return Answer.NOT_PROVEN
    if not with_amounts[0]["is_over"]:
        return Answer.NO_OPEN_BREAK_SO_FAR
    is_balanced = all(cell["is_balanced"] for cell in with_amounts)
    return Answer.BALANCED if is_balanced and not reasons else Answer.NO_OPEN_BREAK


def _sign_off(cell: Row, *, is_known: bool) -> SignOff:
    if cell["state"] in ("closed", "outdated"):
        if cell["changed_records"]:
            return SignOff.CHANGED
        return SignOff.UNCHANGED if is_known else SignOff.SIGNED_OFF
    if cell["state"] == "reopened":
        return SignOff.REOPENED
    is_month_of_the_data = cell["place"] == 0
    if is_month_of_the_data and not cell["is_over"]:
        return SignOff.IN_PROGRESS
    return SignOff.NOT_SIGNED_OFF


def _changed_months(rows: Iterable[Row], order: Sequence[str | None]) -> tuple[ChangedMonth, ...]:
    """Return the closed months that changed, the newest first, of their rows by currency."""
    by_month: dict[date, list[Row]] = defaultdict(list)
    for row in rows:
        by_month[row["month"]].append(row)
    changed = []
    for month, of_month in sorted(by_month.items(), reverse=True):
        posted_to = {each for row in of_month for each in row["posted_to"] or ()}
        month_of = of_month[0]
        sides = {
            row["currency"]: {"used": row["used"], "billed": row["billed"]}
            for row in of_month
            if row["used"] is not None
        }
        changed.append(
            ChangedMonth(
                month=month,
                closed_at=month_of["closed_at"],
                preparer=month_of["preparer"],
                reviewer=month_of["reviewer"],
                changed_records=month_of["changed_records"],
                posted_to=tuple(sorted(posted_to)),
                sides=sides,
                difference=add_up((row for row in of_month if row["difference"]), order),
            )
        )
    return tuple(changed)


def _month_as_json(month: MonthVerdict) -> dict[str, Any]:
    return {
        "months": month.months,
        "sign_off": month.sign_off,
        "closed_at": month.closed_at,
        "changed_records": month.changed_records,
        "answer": month.answer,
        "open_breaks": month.open_breaks,
        "difference": _sums_as_json(month.difference),
        "open": _sums_as_json(month.open),
        "reasons": [
            {"reason": reason, "amounts": _sums_as_json(sums)}
            for reason, sums in month.reasons.items()
        ],
        "without_amounts": month.without_amounts,
    }


def _sums_as_json(sums: Sums) -> list[dict[str, Any]]:
    return [asdict(amount) for amount in sums.values()]
