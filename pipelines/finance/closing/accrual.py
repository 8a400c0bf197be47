"""What the journal of a month would accrue if the month were closed today.

It reads what the journal reads (unbilled), and rounds as its entries do. So it needs no accounts.
"""

from datetime import date
from typing import Final

import duckdb

from pipelines.finance.closing.unbilled import find_unbilled
from pipelines.warehouse.duckdb_file import Row, fetch_rows

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
