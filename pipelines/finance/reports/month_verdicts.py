"""Here: whether each month is right (balanced), not proven or wrong, and about its sign-off.

Not here: whether usage and billing are equal. `is_balanced` comes from `sql/recent.sql`, which
reads `sql/months.sql`, which reads `verdict` of `reconciliation.summary`, which reads
`reconciliation.month_facts`: of a partner's month, of a month, of several months in turn. Checks
and messages to operators show alerts instead (alerts).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from pipelines.finance.reports.amounts import Sums, add_up, sums_as_json
from pipelines.finance.reports.prepared import Prepared
from pipelines.finance.reports.queries import Figures
from pipelines.warehouse.duckdb_file import Row

# The reason that query `reasons` gives to what is in open breaks.
OPEN_BREAKS: Final = "open breaks"
EVERY_AMOUNT: Final = (
    "used", "billed", "credited", "difference", "unbilled", "overbilled", "other",
)  # fmt: skip


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

    `OTHER_MAPPING`: no record changed, but its figures may be others than those that were signed.
    `SIGNED_OFF`: no change is known, and nobody can say that there is none. `NOT_KNOWN`: closed
    months could not be compared with their copies. `PREPARED`: another user has to approve it.
    """

    IN_PROGRESS = "in progress"
    NOT_SIGNED_OFF = "not signed off"
    NOT_KNOWN = "sign-off not known"
    REOPENED = "reopened"
    PREPARED = "prepared, waiting for approval"
    SIGNED_OFF = "signed off"
    UNCHANGED = "signed off, unchanged since"
    CHANGED = "signed off, changed since"
    OTHER_MAPPING = "signed off with another mapping"


@dataclass(frozen=True)
class MonthVerdict:
    """What is known of a month, or of all other months with the same sign-off.

    `month` is None of several months, `months` are all of them; one may be None: no month. `open`
    is the part of `difference` in open breaks, `reasons` have the rest. `difference` leaves out
    currencies without one. `without_amounts` are the currencies without usage and bills: of a
    month, and of several if no currency has any. `usage_until` is the day on which the usage of a
    connection ends, if that is before the end of the month: then nothing proves the month. `own`
    are open breaks with own books, which are in no other number.
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
    usage_until: date | None
    own: Sums = field(default_factory=dict)


@dataclass(frozen=True)
class ChangedMonth:
    """A closed month that is not as it was signed off; amounts are changes since then.

    `net_difference` is their text by side and currency. `posted_to` are the months to which its
    corrections are posted. `connections` are those that it was closed for (None: all). `sides` has
    the changes of each currency with one: used and billed.
    """

    month: date
    connections: str | None
    closed_at: datetime
    approval: str
    preparer: str
    reviewer: str
    changed_records: int
    net_difference: str
    posted_to: tuple[date, ...]
    sides: dict[str | None, dict[str, Decimal]]
    difference: Sums


def judge_months(figures: Figures, *, is_all_known: bool) -> tuple[MonthVerdict, ...]:
    """Return a verdict for each place of the query `recent` that has something to say."""
    places: dict[int, list[Row]] = defaultdict(list)
    for cell in figures.tables["recent"]:
        places[cell["place"]].append(cell)
    reasons: dict[int | None, list[Row]] = defaultdict(list)
    for row in figures.tables["reasons"]:
        reasons[row["place"]].append(row)
    order = order_of(figures)
    waiting = {prepared.month for prepared in figures.prepared if prepared.connections is None}
    verdicts = []
    for place, cells in sorted(places.items()):
        verdict = _judge_month(cells, reasons[place], order, waiting, is_all_known=is_all_known)
        own = [
            row
            for row in figures.tables["open_breaks"]
            if row["own_source"] is not None and row["month"] in verdict.months
        ]
        verdict = replace(verdict, own=add_up(own, order))
        is_empty = verdict.answer is Answer.NO_AMOUNTS and not verdict.changed_records
        if verdict.month or not is_empty:
            verdicts.append(verdict)
    return tuple(verdicts)


def every_month(
    rows: Iterable[Row], prepared: Sequence[Prepared], *, is_all_known: bool
) -> dict[str, list[Any]]:
    """Return each month of a connection and currency by column, with verdict and sign-off.

    The rows are those of `details/months.sql`. Amounts are exact texts. `prepared` are the months
    that wait for approval.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        verdict = _verdict_of_connection(row, prepared, is_all_known=is_all_known)
        for name, value in verdict.items():
            columns[name].append(value)
    return dict(columns)


def _verdict_of_connection(
    row: Row, prepared: Sequence[Prepared], *, is_all_known: bool
) -> dict[str, Any]:
    """Return the month of a connection and currency, with verdict and sign-off."""
    waiting = {month.month for month in prepared if month.is_of(row["connection"])}
    is_known = is_all_known and not row["is_doubtful"]
    has_all_usage = row["usage_until"] is None
    reasons = []
    if row["open_breaks"]:
        reasons.append({"reason": OPEN_BREAKS})
    if row["uncertain_breaks"]:
        reasons.append({"reason": "uncertain"})
    return {
        "connection": row["connection"],
        "month": row["month"].isoformat()[:7] if row["month"] else None,
        "currency": row["currency"],
        "signed": _sign_off(row, waiting, is_known=is_known),
        "answer": _answer_of_month([row], reasons, is_known=is_known and has_all_usage),
        "open_breaks": row["open_breaks"],
        **{name: f"{row[name]:f}" for name in EVERY_AMOUNT},
    }


def judge_changed_months(figures: Figures) -> tuple[ChangedMonth, ...]:
    """Return the closed months that are not as they were signed off, the newest first."""
    rows_of: dict[date, list[Row]] = defaultdict(list)
    for row in figures.tables["changed_closes"]:
        rows_of[row["month"]].append(row)
    order = order_of(figures)
    months = sorted(rows_of, reverse=True)
    return tuple(_changed_month(month, rows_of[month], order) for month in months)


def order_of(figures: Figures) -> list[str | None]:
    """Return the currencies in the order in which every part of the report has them."""
    return [row["currency"] for row in figures.tables["currencies"]]


def sums_by_reason(rows: Iterable[Row], order: Sequence[str | None]) -> dict[str, Sums]:
    """Return the sums of each reason, in the order of the rows."""
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rows_of[row["reason"]].append(row)
    return {reason: add_up(of_reason, order, "number") for reason, of_reason in rows_of.items()}


def _judge_month(
    cells: Sequence[Row],
    reasons: Sequence[Row],
    order: Sequence[str | None],
    waiting: Collection[date],
    *,
    is_all_known: bool,
) -> MonthVerdict:
    """Return the verdict of one place: a row for each currency, and the parts of the difference."""
    # What is not an amount is the same for all currencies.
    any_cell = cells[0]
    is_known = is_all_known and not any(cell["is_doubtful"] for cell in cells)
    usage_until = _usage_until(cells)
    has_all_usage = usage_until is None
    with_amounts = [cell for cell in cells if cell["difference"] is not None]
    # A currency that is equal is not among the sums.
    different = [cell for cell in with_amounts if cell["difference"]]
    in_open_breaks = []
    others = []
    for part in reasons:
        if part["reason"] == OPEN_BREAKS:
            in_open_breaks.append(part)
        else:
            others.append(part)
    return MonthVerdict(
        month=any_cell["month"],
        months=tuple(any_cell["months"]),
        sign_off=_sign_off(any_cell, waiting, is_known=is_known),
        closed_at=any_cell["closed_at"],
        changed_records=any_cell["changed_records"] or 0,
        answer=_answer_of_month(with_amounts, reasons, is_known=is_known and has_all_usage),
        open_breaks=sum(part["number"] for part in in_open_breaks),
        has_amounts=bool(with_amounts),
        difference=add_up(different, order),
        open=add_up(in_open_breaks, order, "number"),
        reasons=sums_by_reason(others, order),
        without_amounts=_without_amounts(cells, order),
        usage_until=usage_until,
    )


def _usage_until(cells: Iterable[Row]) -> date | None:
    """Return the first day on which the usage of a connection ends; None if all have it."""
    days = [cell["usage_until"] for cell in cells if cell["usage_until"] is not None]
    return min(days, default=None)


def _without_amounts(cells: Sequence[Row], order: Sequence[str | None]) -> tuple[str | None, ...]:
    """Return the currencies without usage and bills; of several months, only if all are."""
    empty = {cell["currency"] for cell in cells if cell["difference"] is None}
    is_one_month = cells[0]["month"] is not None
    if not is_one_month and len(empty) < len(cells):
        return ()
    return tuple(currency for currency in order if currency in empty)


def _answer_of_month(
    with_amounts: Sequence[Row], reasons: Sequence[Row], *, is_known: bool
) -> Answer:
    """Answer for a month: it is balanced only if it is over, and if nothing is left to explain."""
    # A difference that was found is one, also where rows may be missing. What may only be missing
    # rows is an uncertain break, and in no number of open breaks.
    if any(row["reason"] == OPEN_BREAKS for row in reasons):
        return Answer.OPEN_BREAKS
    if not with_amounts:
        return Answer.NO_AMOUNTS
    if not is_known:
        return Answer.NOT_PROVEN
    if not with_amounts[0]["is_over"]:
        return Answer.NO_OPEN_BREAK_SO_FAR
    is_balanced = all(cell["is_balanced"] for cell in with_amounts)
    if is_balanced and not reasons:
        return Answer.BALANCED
    return Answer.NO_OPEN_BREAK


BY_STATE: Final = {
    "other mapping": SignOff.OTHER_MAPPING,
    "reopened": SignOff.REOPENED,
    "prepared": SignOff.PREPARED,
}


def _sign_off(cell: Row, waiting: Collection[date], *, is_known: bool) -> SignOff:
    """Return whether a month is signed off; those of `waiting` are prepared."""
    if cell["state"] in ("closed", "outdated"):
        if cell["changed_records"]:
            return SignOff.CHANGED
        return SignOff.UNCHANGED if is_known else SignOff.SIGNED_OFF
    state = "prepared" if cell["month"] in waiting else cell["state"]
    if state in BY_STATE:
        return BY_STATE[state]
    is_month_of_the_data = cell["place"] == 0
    if is_month_of_the_data and not cell["is_over"]:
        return SignOff.IN_PROGRESS
    if cell["state"] == "not known":
        return SignOff.NOT_KNOWN
    return SignOff.NOT_SIGNED_OFF


def _changed_month(month: date, rows: Sequence[Row], order: Sequence[str | None]) -> ChangedMonth:
    """Return a closed month of its rows by currency; one without a posting has no amounts."""
    posted_to: set[date] = set()
    sides = {}
    for row in rows:
        posted_to.update(row["posted_to"] or ())
        if row["used"] is not None:
            sides[row["currency"]] = {"used": row["used"], "billed": row["billed"]}
    # What is not an amount is the same for all currencies.
    any_row = rows[0]
    return ChangedMonth(
        month=month,
        closed_at=any_row["closed_at"],
        connections=any_row["connections"],
        approval=any_row["approval"],
        preparer=any_row["preparer"],
        reviewer=any_row["reviewer"],
        changed_records=any_row["changed_records"],
        net_difference=any_row["net_difference"] or "no amount",
        posted_to=tuple(sorted(posted_to)),
        sides=sides,
        difference=add_up((row for row in rows if row["difference"]), order),
    )


def month_as_json(month: MonthVerdict) -> dict[str, Any]:
    """Return a verdict as `report --json` has it."""
    reasons = []
    for reason, sums in month.reasons.items():
        reasons.append({"reason": reason, "amounts": sums_as_json(sums)})
    return {
        "months": month.months,
        "sign_off": month.sign_off,
        "closed_at": month.closed_at,
        "changed_records": month.changed_records,
        "answer": month.answer,
        "open_breaks": month.open_breaks,
        "difference": sums_as_json(month.difference),
        "open": sums_as_json(month.open),
        "reasons": reasons,
        "own": sums_as_json(month.own),
        "without_amounts": month.without_amounts,
        "usage_until": month.usage_until,
    }
