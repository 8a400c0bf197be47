"""What figures have of the accrual of a month; it is read with them, and judged later (ledger)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pipelines.finance.mapping import Accounts, Side
from pipelines.warehouse.duckdb_file import Row


@dataclass(frozen=True)
class Accrual:
    """What the journal of the newest month that is over accrues: `rows` by currency and reason.

    `accounts` is None where `mapping.toml` has no accounts. `copy` is the number of the copy of a
    month that is closed (None: it is not). `is_written`: the rows are those of its journal.
    Otherwise they are what a journal would have today, and `reversed_rows` are what the journal of
    `reversed_month`, the last that was written, accrued: it reverses them a month later. `months`
    has what is accrued by month of the usage, exact; none where that is not known.
    """

    accounts: Accounts | None
    month: date
    rows: Sequence[Row]
    copy: int | None
    is_written: bool
    reversed_month: date | None = None
    reversed_rows: Sequence[Row] = ()
    months: Sequence[Row] = ()

    @property
    def side(self) -> Side | None:
        """Who pays what is billed; None: `mapping.toml` has no accounts."""
        return self.accounts.side if self.accounts else None
