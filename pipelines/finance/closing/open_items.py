"""What the unbilled usage at the end of a month consists of: accrued, or why it is not.

A row is an open item: a break, a charge, or what else differs in a month of a partner. The amounts
of all items of a partner add up to its closing balance, exactly. Items without a month are in no
balance.
"""

from datetime import date
from typing import Final

import duckdb

from pipelines.finance.closing.unbilled import find_unbilled

ACCRUED: Final = "accrued"
NO_MONTH: Final = "no month"
AMOUNTS: Final = (
    "SELECT used.amount FROM temp.used AS used",
    "SELECT billed.amount FROM temp.billed AS billed",
    "SELECT lines.amount FROM reconciliation.without_usage AS lines",
    "SELECT pairs.difference FROM reconciliation.exceptions AS pairs",
)
# Used less billed of each month; then what breaks, charges and pairs that are no break explain of
# it. The rest is what both sides differ by in the month, such as usage whose bill is in another.
OPEN_ITEMS: Final = """
WITH items AS (
    SELECT
        if(found.break_id IS NULL, 'correction', 'open break') AS kind, found.connection,
        found.partner, found.currency, found.month, found.source,
        coalesce(found.reason, 'accrued') AS reason, found.because, found.amount::{amount} AS amount
    FROM accruable AS found
    WHERE found.kind = 'accrual' AND found.own_source IS NULL
    UNION ALL BY NAME
    SELECT
        'resolved break' AS kind, breaks.connection, breaks.partner, breaks.currency,
        breaks.month, breaks.break_id AS source, 'resolved' AS reason,
        nullif(concat_ws(': ', breaks.resolved_by, breaks.reason), '') AS because,
        -breaks.difference::{amount} AS amount
    FROM reconciliation.breaks AS breaks
    WHERE breaks.state = 'resolved' AND breaks.gone_at IS NULL AND breaks.own_source IS NULL
        AND breaks.month <= $month AND breaks.difference <> 0
    UNION ALL BY NAME
    SELECT
        'charge' AS kind, lines.connection, lines.partner, lines.currency, lines.month,
        split_part(lines.reason, ': ', 1) AS reason, lines.kind AS because,
        -lines.amount::{amount} AS amount
    FROM reconciliation.without_usage AS lines
    WHERE lines.month <= $month
    UNION ALL BY NAME
    SELECT
        'pairs' AS kind, pairs.connection, pairs.partner, pairs.currency, pairs.month,
        CASE pairs.status WHEN 'tentative' THEN 'not due yet' WHEN 'unreadable' THEN 'not readable'
            ELSE pairs.status END AS reason,
        concat(count(*), if(count(*) = 1, ' pair', ' pairs'), ' of usage and bill') AS because,
        -sum(pairs.difference)::{amount} AS amount
    FROM reconciliation.exceptions AS pairs
    WHERE pairs.month <= $month
        AND pairs.status IN ('within tolerance', 'rounding', 'tentative', 'unreadable')
    GROUP BY pairs.connection, pairs.partner, pairs.currency, pairs.month, pairs.status
    HAVING sum(pairs.difference) <> 0
), sides AS (
    SELECT used.connection, used.partner, used.currency, used.month, used.amount AS used
    FROM temp.used AS used
    WHERE used.month <= $month
    UNION ALL BY NAME
    SELECT billed.connection, billed.partner, billed.currency, billed.month, billed.amount AS billed
    FROM temp.billed AS billed
    WHERE billed.month <= $month AND (billed.apart IS NULL OR billed.apart = 'credit note')
    UNION ALL BY NAME
    SELECT items.connection, items.partner, items.currency, items.month, items.amount AS explained
    FROM items
    WHERE items.kind <> 'correction' AND items.month IS NOT NULL
), rests AS (
    SELECT
        sides.connection, sides.partner, sides.currency, sides.month,
        (coalesce(sum(sides.used), 0) - coalesce(sum(sides.billed), 0)
            - coalesce(sum(sides.explained), 0))::{amount} AS amount,
        count(sides.explained) > 0 AS is_explained
    FROM sides
    GROUP BY ALL
    HAVING amount <> 0
), posted AS (
    -- A balance has what is posted to a later month only there, bills too.
    SELECT
        moved.connection, moved.partner, moved.currency, moved.month,
        if(moved.side = 'usage', -moved.difference, moved.difference)::{amount} AS amount
    FROM reconciliation.corrections AS moved
    WHERE moved.month < $month AND moved.posted_to > $month
    UNION ALL BY NAME
    SELECT items.connection, items.partner, items.currency, items.month, -items.amount AS amount
    FROM items
    WHERE items.kind = 'correction'
), entries AS (
    SELECT
        found.connection, found.partner, found.currency, found.account_kind AS source,
        (cut(sum(found.amount), found.minor_unit) - sum(found.amount))::{amount} AS amount
    FROM accruable AS found
    WHERE found.kind = 'accrual' AND found.reason IS NULL
    GROUP BY found.connection, found.partner, found.currency, found.account_kind, found.minor_unit
    HAVING amount <> 0
)
FROM items
UNION ALL BY NAME
SELECT
    'month' AS kind, rests.* EXCLUDE (is_explained),
    CASE WHEN months.verdict = 'within tolerance' THEN months.verdict
        WHEN months.verdict = 'tentative' THEN 'not due yet'
        WHEN months.verdict = 'balanced' THEN 'rounding'
        WHEN rests.is_explained THEN 'differences without a break'
        WHEN starts_with(months.cause, 'unknown partner ') THEN 'opposite of unknown partner'
        WHEN starts_with(months.cause, 'other partner ') THEN 'opposite of another partner'
        ELSE 'differences without a break' END AS reason,
    if(rests.is_explained, 'several causes', months.cause) AS because
FROM rests
LEFT JOIN finance.partner_months AS months
    ON months.connection = rests.connection AND months.month = rests.month
    AND months.partner_id IS NOT DISTINCT FROM rests.partner
    AND months.currency IS NOT DISTINCT FROM rests.currency
UNION ALL BY NAME
SELECT
    'correction' AS kind, posted.connection, posted.partner, posted.currency, posted.month,
    'posted to a later month' AS reason, sum(posted.amount)::{amount} AS amount
FROM posted
GROUP BY ALL
HAVING sum(posted.amount) <> 0
UNION ALL BY NAME
-- What an entry is rounded by is accrued, and is no usage.
SELECT
    'rounding' AS kind, entries.* REPLACE (unnest([entries.amount, -entries.amount]) AS amount),
    unnest(['accrued', 'rounding of entries']) AS reason
FROM entries
"""


def find_open_items(db: duckdb.DuckDBPyConnection, month: date) -> str:
    """Return the statement of the open items at the end of a month, for `$month`.

    The views of rows of both sides must be there. Raises duckdb.Error.
    """
    return OPEN_ITEMS.format(amount=find_unbilled(db, month, AMOUNTS))
