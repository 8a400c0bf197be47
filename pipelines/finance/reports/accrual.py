"""What figures have of the accrual of a month; it is read with them, and judged later (ledger)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from pipelines.warehouse.duckdb_file import Row

Side = Literal["payable", "receivable"]


@dataclass(frozen=True)
class Accrual:
    """What the journal of the newest month that is over accrues: `rows` by currency and reason.

    `side` is None where `mapping.toml` has no accounts.
    """

    side: Side | None
    month: date
    rows: Sequence[Row]
