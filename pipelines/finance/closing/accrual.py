"""What the journal of a month accrues: as its copy says, or if the month were closed today.

The latter reads what the journal reads (unbilled), and rounds as its entries do. So it needs no
accounts.
"""

from datetime import date
from pathlib import Path
from typing import Final

import duckdb

from pipelines.finance.closing.unbilled import find_unbilled
from pipelines.finance.reconcile.close_copy import ENTRIES, OPEN_ITEMS
from pipelines.warehouse.duckdb_file import SETTINGS, Row, fetch_rows

# Corrections that are posted later are no breaks, so they are not counted.
TO_ACCRUE: Final = """
WITH entries AS (
    SELECT
        found.reason, found.currency, count(found.break_id) AS number, sum(found.amount) AS amount,
        if(found.reason IS NULL, cut(sum(found.amount), found.minor_unit), NULL) AS posted
    FROM accruable AS found
    WHERE found.kind = 'accrual' AND found.own_source IS NULL
    GROUP BY found.reason, found.currency, found.minor_unit, found.account_kind, found.connection,
        found.partner
)
SELECT
    entries.reason, entries.currency, sum(entries.number)::BIGINT AS number,
    sum(entries.posted) AS posted, sum(entries.amount) AS amount
FROM entries
GROUP BY entries.reason, entries.currency
ORDER BY entries.reason NULLS FIRST, entries.currency
"""


def read_accrual(db: duckdb.DuckDBPyConnection, month: date) -> list[Row]:
    """Return by currency what the journal of a month accrues of open books (`posted`).

    `reason` is why something is left out, which has only its exact `amount`. Raises duckdb.Error.
    """
    find_unbilled(db, month)
    return fetch_rows(db, TO_ACCRUE)


# Of the months of the usage, exact: an entry is rounded as a whole.
MONTHS: Final = """
SELECT found.month, found.currency, sum(found.amount) AS difference, count(*) AS number
FROM {rows} AS found
WHERE {is_accrued}
GROUP BY found.month, found.currency
HAVING sum(found.amount) <> 0
ORDER BY found.month DESC, found.currency
"""
TODAY: Final = MONTHS.format(
    rows="accruable",
    is_accrued="found.kind = 'accrual' AND found.own_source IS NULL AND found.reason IS NULL",
)
AT_THE_CLOSE: Final = MONTHS.format(
    rows="read_parquet($file)",
    is_accrued="found.reason = 'accrued' AND found.kind <> 'rounding'",
)


def read_accrued_months(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return from which months that is what `read_accrual` has found. Raises duckdb.Error."""
    return fetch_rows(db, TODAY)


def read_written_months(folder: Path) -> list[Row]:
    """Return from which months that is what the journal in a copy accrues; none if unknown.

    Raises duckdb.Error.
    """
    file = folder / OPEN_ITEMS
    if not file.exists():
        return []
    with duckdb.connect(config=SETTINGS) as db:
        return fetch_rows(db, AT_THE_CLOSE, {"file": str(file)})


# The line of the account has the sum of an entry, that of the rounding has no amount.
WRITTEN: Final = """
SELECT
    NULL AS reason, lines.currency,
    count(*) FILTER (lines.source <> lines.close AND NOT starts_with(lines.source, 'usage '))
        AS number,
    sum(if(lines.amount < 0, 1, -1) * coalesce(lines.debit, lines.credit)::DECIMAL(38, 4))
        FILTER (lines.source = lines.close) AS posted,
    posted AS amount
FROM read_parquet($file) AS lines
WHERE lines.kind = 'accrual' AND lines.left_out IS NULL AND lines.amount IS NOT NULL
GROUP BY lines.currency
HAVING posted IS NOT NULL
ORDER BY lines.currency
"""
LEFT_OUT: Final = """
SELECT
    items.reason, items.currency, count(*) AS number, NULL AS posted, sum(items.amount) AS amount
FROM read_parquet($file) AS items
WHERE items.kind = 'open break' AND items.reason <> 'accrued'
GROUP BY items.reason, items.currency
ORDER BY items.reason, items.currency
"""


def read_written_accrual(folder: Path) -> list[Row] | None:
    """Return what the journal in a copy accrues, and what it leaves out; None without a journal.

    Earlier releases wrote no open items: then nobody knows here what is left out. Raises
    duckdb.Error.
    """
    if not (folder / ENTRIES).exists():
        return None
    with duckdb.connect(config=SETTINGS) as db:
        rows = fetch_rows(db, WRITTEN, {"file": str(folder / ENTRIES)})
        if (folder / OPEN_ITEMS).exists():
            rows += fetch_rows(db, LEFT_OUT, {"file": str(folder / OPEN_ITEMS)})
        return rows
