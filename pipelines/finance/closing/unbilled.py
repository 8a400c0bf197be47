"""Which open breaks and corrections the journal of a month accrues, and why it leaves out others.

Here: the only list of reasons. Journal, working paper and report show them as they are here, so
that their sums by reason are the same. Not here: accounts and sides (entries).
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import duckdb

from pipelines.finance.currencies import minor_unit_of
from pipelines.warehouse.duckdb_file import decimal_scale

LEAST_SCALE: Final = 4  # digits behind the point that lines of an earlier journal may have
AMOUNTS: Final = (
    "SELECT breaks.difference FROM reconciliation.breaks AS breaks",
    "SELECT posted.difference FROM reconciliation.corrections AS posted",
)
# Usage without a bill, and the part of it that its bill lacks, are accrued. Any other break has a
# `reason`; `because` says more of it. `amount` is what is used less what is billed.
OPEN_BREAKS: Final = """
SELECT
    'accrual' AS kind, breaks.rule AS account_kind, breaks.month, breaks.connection,
    breaks.partner, breaks.currency, breaks.break_id AS source, breaks.break_id,
    breaks.own_source, -breaks.difference::{amount} AS amount,
    CASE WHEN breaks.own_source IS NOT NULL THEN 'own books'
         WHEN breaks.month IS NULL THEN 'no month'
         WHEN breaks.difference IS NULL THEN 'no amount'
         WHEN breaks.currency IS NULL THEN 'no currency'
         WHEN coalesce(breaks.uncertain, breaks.doubt) IS NOT NULL THEN 'uncertain'
         WHEN breaks.rule = 'unknown_partner' THEN 'unknown partner'
         WHEN breaks.rule = 'disappeared' THEN 'no longer in its list'
         WHEN breaks.cause = 'other partner' THEN 'billed to another partner'
         WHEN breaks.cause = 'other currency' THEN 'billed in another currency'
         WHEN breaks.cause = 'no currency' THEN 'billed without a currency'
         WHEN breaks.rule IN ('not_billed', 'different')
            AND sign(breaks.difference) = -sign(ifnull(breaks.used_amount, 0)) THEN NULL
         WHEN breaks.difference > 0 THEN 'overbilled'
         WHEN breaks.difference < 0 THEN 'overcredited'
         ELSE 'no difference of amounts' END AS reason,
    if(reason = 'uncertain', coalesce(breaks.uncertain, breaks.doubt), NULL) AS because
FROM reconciliation.breaks AS breaks
WHERE (breaks.month <= $month OR breaks.month IS NULL) AND breaks.state <> 'resolved'
"""
# A ledger has a bill from its invoice, whenever that comes. A correction moves what the accrual has
# of usage: nothing, if its break is left out. That it disappeared is no such break.
CORRECTED: Final = """
SELECT
    'correction' AS kind, 'correction' AS account_kind, posted.month, posted.connection,
    posted.partner, posted.currency,
    concat(posted.side, ' ', posted.id, ' of ', strftime(posted.month, '%Y-%m')) AS source,
    posted.difference::{amount} AS amount,
    CASE WHEN posted.side = 'billing' THEN 'bill'
         WHEN posted.currency IS NULL THEN 'no currency'
         ELSE not_accrued.reason END AS reason,
    if(posted.side = 'billing', 'posted when its invoice is booked', NULL) AS because
FROM reconciliation.corrections AS posted
LEFT JOIN not_accrued USING (side, connection, id, partner, currency)
WHERE posted.posted_to = $month
"""
# What is posted to a later month, whose journal moves it: that month accrues it, as balances say.
# A month that was reopened, and is closed again, is before it.
POSTED_LATER: Final = """
SELECT
    'accrual' AS kind, 'not_billed' AS account_kind, posted.month, posted.connection,
    posted.partner, posted.currency,
    concat(posted.side, ' ', posted.id, ' of ', strftime(posted.month, '%Y-%m')) AS source,
    -sum(posted.difference)::{amount} AS amount
FROM reconciliation.corrections AS posted
ANTI JOIN not_accrued USING (side, connection, id, partner, currency)
WHERE posted.side = 'usage' AND posted.currency IS NOT NULL
    AND posted.month <= $month AND posted.posted_to > $month
GROUP BY ALL
HAVING sum(posted.difference) <> 0
"""
# An entry is of one kind, partner and currency. It is rounded once, and so is each of its lines.
FOUND: Final = """
CREATE OR REPLACE TEMP TABLE accruable AS
WITH open_breaks AS (
    {open_breaks}
), not_accrued AS (
    SELECT
        rows.side, rows.connection, rows.id, rows.partner, rows.currency,
        min(open_breaks.reason) AS reason
    FROM open_breaks
    JOIN reconciliation.break_rows AS rows USING (break_id)
    WHERE rows.side = 'usage' AND open_breaks.reason IS NOT NULL
        AND open_breaks.account_kind <> 'disappeared' AND open_breaks.own_source IS NULL
    GROUP BY ALL
), found AS (
    FROM open_breaks
    UNION ALL BY NAME
    {posted_later}
    UNION ALL BY NAME
    {corrected}
), rounded AS (
    SELECT
        found.*, {minor_unit} AS minor_unit, cut(found.amount, minor_unit) AS line,
        sum(found.amount) OVER entry AS entry_amount,
        max(abs(line)) OVER entry AS largest_line
    FROM found
    WINDOW entry AS (
        PARTITION BY found.kind, found.account_kind, found.connection, found.partner,
            found.currency, found.reason IS NULL
    )
)
SELECT
    rounded.* EXCLUDE (line, entry_amount, largest_line) REPLACE (coalesce(rounded.reason, if(
        rounded.largest_line = 0 AND cut(rounded.entry_amount, rounded.minor_unit) = 0,
        'rounded to zero', NULL
    )) AS reason)
FROM rounded
"""
# Amounts in minor units, and their text with as many digits as the currency has. Zero is no line.
# Each case has the type of all: DuckDB would take one with fewer digits for the others, too.
MACROS: Final = """
CREATE OR REPLACE TEMP MACRO cut(x, minor_unit) AS CASE minor_unit
    WHEN 1 THEN round(x, 0)::DECIMAL(38, 4) WHEN 0.01 THEN round(x, 2)::DECIMAL(38, 4)
    WHEN 0.001 THEN round(x, 3)::DECIMAL(38, 4) ELSE round(x, 4)::DECIMAL(38, 4) END;
CREATE OR REPLACE TEMP MACRO text_of(x, minor_unit) AS if(x > 0, left(x::VARCHAR,
    length(x::VARCHAR) - CASE minor_unit WHEN 1 THEN 5 WHEN 0.01 THEN 2 WHEN 0.001 THEN 1 ELSE 0 END
), NULL);
"""


def find_unbilled(
    db: duckdb.DuckDBPyConnection, month: date, more_amounts: Sequence[str] = ()
) -> str:
    """Create table `accruable` of open books: what the journal of a month accrues or leaves out.

    A row is an open break, or a correction; `reason` is why it is left out (NULL: it is accrued).
    Macro `cut` rounds to minor units. Returns the type of amounts, which holds those of the
    statements `more_amounts` too. Raises duckdb.Error.
    """
    amount = _amount_type(db, more_amounts)
    parts: dict[str, Any] = {
        "open_breaks": OPEN_BREAKS.format(amount=amount),
        "posted_later": POSTED_LATER.format(amount=amount),
        "corrected": CORRECTED.format(amount=amount),
        "minor_unit": minor_unit_of("found.currency"),
    }
    db.execute(MACROS)
    db.execute(FOUND.format(**parts), {"month": month})
    return amount


def _amount_type(db: duckdb.DuckDBPyConnection, more_amounts: Sequence[str]) -> str:
    """Return a type that holds the amounts of breaks, corrections and earlier journals."""
    scale = LEAST_SCALE
    for query in (*AMOUNTS, *more_amounts):
        (amount_type,) = db.sql(query).types
        scale = max(scale, decimal_scale(amount_type))
    return f"DECIMAL(38, {scale})"
