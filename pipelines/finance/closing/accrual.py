"""What the journal of a month would accrue if the month were closed today.

It reads the statement of the journal (UNBILLED), which decides what is accrued, and rounds as its
entries do. So it needs no accounts.
"""

from datetime import date
from typing import Final

import duckdb

from pipelines.finance.closing.journal import MACROS, UNBILLED, amount_type
from pipelines.finance.currencies import minor_unit_of
from pipelines.warehouse.duckdb_file import Row, fetch_rows

# An entry is of one kind, partner and currency; its sum is rounded once. Of what is left out, only
# where more is used than billed, or nobody knows: the rest is no unbilled usage.
TO_ACCRUE: Final = """
WITH found AS (
    {unbilled}
), entries AS (
    SELECT
        found.currency,
        CASE WHEN starts_with(found.left_out, 'uncertain: ') THEN 'uncertain'
            WHEN found.left_out IS NOT NULL AND found.account_kind = 'unknown_partner'
                THEN 'it names an unknown partner'
            ELSE found.left_out END AS reason,
        count(*) AS number, sum(found.amount) AS amount, {minor_unit} AS minor_unit
    FROM found
    WHERE found.own_source IS NULL
        AND (found.left_out IS NULL OR found.amount IS NULL OR found.amount > 0)
    GROUP BY found.currency, reason, found.account_kind, found.connection, found.partner
)
SELECT
    entries.reason, entries.currency, sum(entries.number)::BIGINT AS number,
    if(entries.reason IS NULL, sum(cut(entries.amount, entries.minor_unit)), NULL) AS posted,
    sum(entries.amount) AS amount
FROM entries
GROUP BY entries.reason, entries.currency
ORDER BY entries.reason NULLS FIRST, entries.currency
"""


def read_accrual(db: duckdb.DuckDBPyConnection, month: date) -> list[Row]:
    """Return by currency what the journal of a month accrues of open books (`posted`).

    `reason` is why something is left out, which has only its exact `amount`. Raises duckdb.Error.
    """
    query = TO_ACCRUE.format(
        unbilled=UNBILLED.format(amount=amount_type(db)),
        minor_unit=minor_unit_of("found.currency"),
    )
    db.execute(MACROS)
    return fetch_rows(db, query, {"month": month})
