"""What open books mean for the ledger: who pays what is billed, and what a month accrues.

Not here: which breaks are accrued (closing.accrual, which reads what the journal reads).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.finance.mapping import Accounts, Side
from pipelines.finance.reports.accrual import Accrual
from pipelines.finance.reports.amounts import EXACT, Amount, Sums, add_up, sums_as_json
from pipelines.finance.reports.month_verdicts import sums_by_reason
from pipelines.warehouse.duckdb_file import Row


@dataclass(frozen=True)
class Ledger:
    """What the page says of the ledger, by currency. Amounts are positive where usage is unbilled.

    `claim` and `to_pay` are open breaks: what you may claim, and what you may have to pay; both are
    empty without a `side`. `withheld` is the part of what is overbilled on bills that are not paid,
    None where nobody knows what is paid. Neither follows of `unclear_overbilled` and
    `unclear_unbilled`. `entry` says which accounts the journal debits and credits. `accrued` is
    rounded as the journal rounds it, `left_out` has exact sums by reason. Both are of the journal
    in copy number `copy` if `is_written`, else of one that would be written today. `months` has it
    by month of the usage, exact, the newest first. Then `reversed` is what the last journal
    accrued, of `reversed_month`, and reverses after it.
    """

    side: Side | None
    entry: str
    month: date
    copy: int | None
    is_written: bool
    claim: Sums
    to_pay: Sums
    withheld: Sums | None
    unclear_overbilled: Sums
    unclear_unbilled: Sums
    accrued: Sums
    months: dict[date, Sums]
    left_out: dict[str, Sums]
    reversed_month: date | None
    reversed: Sums

    def may_withhold(self) -> Sums | None:
        """Return what you may withhold; None where nobody knows it, and where you are paid."""
        return self.withheld if self.side == "payable" else None

    def paid(self) -> Sums:
        """Return the part of what is overbilled on bills that are paid."""
        overbilled = self.claim if self.side == "payable" else self.to_pay
        paid = {}
        for currency, sum_ in overbilled.items():
            unpaid = (self.withheld or {}).get(currency)
            amount = sum_.amount or Decimal(0)
            if unpaid and unpaid.amount is not None:
                amount = EXACT.subtract(amount, unpaid.amount)
            if amount:
                paid[currency] = Amount(currency, amount, sum_.number)
        return paid

    def as_json(self) -> dict[str, Any]:
        """Return it as `report --json` has it."""
        left_out = []
        for reason, sums in self.left_out.items():
            left_out.append({"reason": reason, "amounts": sums_as_json(sums)})
        return {
            "side": self.side,
            "claim": sums_as_json(self.claim),
            "to_pay": sums_as_json(self.to_pay),
            "withheld": None if self.withheld is None else sums_as_json(self.withheld),
            "unclear_overbilled": sums_as_json(self.unclear_overbilled),
            "unclear_unbilled": sums_as_json(self.unclear_unbilled),
            "accrual": {
                "month": self.month,
                "copy": self.copy,
                "is_written": self.is_written,
                "accrued": sums_as_json(self.accrued),
                "months": [
                    {"month": f"{month:%Y-%m}", "amounts": sums_as_json(sums)}
                    for month, sums in self.months.items()
                ],
                "left_out": left_out,
                "reversed_month": self.reversed_month,
                "reversed": sums_as_json(self.reversed),
            },
        }


def read_as_ledger(
    accrual: Accrual,
    claims: Iterable[Row],
    withheld: Iterable[Row] | None,
    not_due: Iterable[Row],
    order: Sequence[str | None],
) -> Ledger:
    """Return the amounts that a ledger needs.

    `claims` and `withheld` are the rows of these queries, the latter None where nobody knows what
    is paid; `not_due` the differences of the month whose bills may still come.
    """
    kinds = sums_by_reason(claims, order)
    unbilled = _opposite(kinds.get("unbilled", {}))
    overbilled = kinds.get("overbilled", {})
    claim: Sums = {}
    to_pay: Sums = {}
    side = accrual.side
    if side == "payable":
        claim = overbilled
        to_pay = unbilled
    elif side == "receivable":
        claim = unbilled
        to_pay = overbilled
    others = [{**row, "difference": row["amount"]} for row in accrual.rows if row["reason"]]
    left_out = sums_by_reason(others, order)
    if not accrual.is_written and (not_yet := _opposite(add_up(not_due, order, "number"))):
        left_out["not due yet"] = not_yet
    return Ledger(
        side=side,
        entry=_entry(accrual.accounts),
        month=accrual.month,
        copy=accrual.copy,
        is_written=accrual.is_written,
        claim=claim,
        to_pay=to_pay,
        withheld=None if withheld is None else add_up(withheld, order, "number"),
        unclear_overbilled=kinds.get("unclear overbilled", {}),
        unclear_unbilled=_opposite(kinds.get("unclear unbilled", {})),
        accrued=_posted(accrual.rows, order),
        months=_by_month(accrual.months, order),
        left_out=left_out,
        reversed_month=accrual.reversed_month,
        reversed=_posted(accrual.reversed_rows, order),
    )


def _entry(accounts: Accounts | None) -> str:
    """Return which accounts the journal debits and credits for usage; empty without accounts."""
    if accounts is None:
        return ""
    debit, credit = (
        f"{account} {accounts.names.get(account, '')}".strip()
        for account in (accounts.result, accounts.accrued)
    )
    if accounts.side == "receivable":
        debit, credit = credit, debit
    others = "; some kinds or partners have other accounts"
    return f"debit {debit}, credit {credit}{others if accounts.kind or accounts.partner else ''}"


def _by_month(rows: Iterable[Row], order: Sequence[str | None]) -> dict[date, Sums]:
    """Return the sums of each month, in the order of the rows."""
    rows_of: dict[date, list[Row]] = {}
    for row in rows:
        rows_of.setdefault(row["month"], []).append(row)
    return {month: add_up(of_month, order, "number") for month, of_month in rows_of.items()}


def _posted(rows: Iterable[Row], order: Sequence[str | None]) -> Sums:
    """Return what rows of an accrual post, by currency."""
    accrued = [{**row, "difference": row["posted"]} for row in rows if not row["reason"]]
    return add_up(accrued, order, "number")


def _opposite(sums: Sums) -> Sums:
    """Return sums of billed minus used as sums of used minus billed."""
    opposite = {}
    for currency, sum_ in sums.items():
        amount = None if sum_.amount is None else EXACT.minus(sum_.amount)
        opposite[currency] = Amount(currency, amount, sum_.number)
    return opposite
