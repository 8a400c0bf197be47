"""The lines that entries of a journal may have by `[accounts]`, for the manifest of a copy.

An auditor compares the journal with them. They do not rest on the statements that write it.
"""

from collections.abc import Iterator
from datetime import timedelta

from pipelines.finance.closing.entries import JournalBasis
from pipelines.finance.mapping import Accounts
from pipelines.finance.reconcile.closed_rows import month_after
from pipelines.metadata.tables import Close

Line = tuple[str, str, str, str, str, str, int | None]
"""Close, kind, what the line has, account, period, date, and the side of a positive amount: 1 for
debit, -1 for credit; None for rounding, which has either."""


def ledger_lines(close: Close, journal: JournalBasis | None) -> list[Line]:
    """Return the lines that the journal of a close may have; none without a journal.

    Of several accounts, as of partners, any may be that of a line.
    """
    return sorted(_lines(close, journal.accounts), key=str) if journal else []


def _lines(close: Close, accounts: Accounts) -> Iterator[Line]:
    number = f"{close.month:%Y-%m}-{close.number:03}"
    next_month = month_after(close.month)
    last_day = next_month - timedelta(days=1)
    side = 1 if accounts.side == "payable" else -1
    for kind, source, contra, day in (
        ("accrual", "result", "accrued", last_day),
        ("reversal", "result", "accrued", next_month),
        ("correction", "correction", "result", last_day),
    ):
        date = f"{day:%Y-%m-%d}"
        for role, has, positive in (
            (source, "source", side),
            (contra, "sum", side),
            ("rounding", "rounding", None),
        ):
            for account in _accounts(accounts, role):
                yield number, kind, has, account, date[:7], date, positive


def _accounts(accounts: Accounts, role: str) -> set[str]:
    tables = (accounts, *accounts.kind.values(), *accounts.partner.values())
    return {account for account in (getattr(table, role) for table in tables) if account}
