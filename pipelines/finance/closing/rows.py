"""Which rows the copy of a closed month has: the statements of its tables.

Not here: how they are written (write), what follows from them (verify, open_items).
"""

from typing import Final

OF_MONTH: Final = "SELECT rows.* FROM {table} AS rows WHERE rows.month = $month"
OF_BREAKS: Final = """
SELECT rows.*{more}
FROM {table} AS rows
JOIN (
    SELECT breaks.break_id, breaks.currency, breaks.own_source
    FROM reconciliation.breaks AS breaks
    WHERE breaks.month = $month
) AS breaks USING (break_id)
"""
# Of a row of another month, of which the copy has nothing else, also whose it is and what it says.
BREAK_ROWS: Final = (
    OF_BREAKS.format(
        table="reconciliation.break_rows",
        more=", breaks.own_source, others.owner, others.key, others.record, others.date, "
        "others.price",
    )
    + """
LEFT JOIN (
    SELECT
        'usage' AS side, used.connection, used.id, used._scan_id, used._page, used._row,
        used.partner AS owner, used.key, used.id AS record, used.day AS date, used.price
    FROM temp.used AS used
    WHERE used.month IS DISTINCT FROM $month
    UNION ALL BY NAME
    SELECT
        'billing' AS side, billed.connection, billed.id, billed._scan_id, billed._page, billed._row,
        billed.partner AS owner, billed.key, coalesce(billed.number, billed.bill) AS record,
        billed.issued_at::DATE AS date, billed.price
    FROM temp.billed AS billed
    WHERE billed.month IS DISTINCT FROM $month
) AS others
    ON others.side = rows.side AND others.connection = rows.connection AND others.id = rows.id
    AND others._scan_id = rows._scan_id AND others._page = rows._page AND others._row = rows._row
"""
)
# Texts that cannot be read are not identifiers: any text may be in them.
OF_ROWS: Final = OF_MONTH.replace("rows.*", "rows.* EXCLUDE (unread_text)")
TABLES: Final = {
    "used": OF_ROWS.format(table="temp.used"),
    "billed": OF_ROWS.format(table="temp.billed"),
    "summary": OF_MONTH.format(table="reconciliation.summary"),
    # By kind; charges that are in a break are not among them.
    "fees": OF_MONTH.format(table="reconciliation.without_usage"),
    # What is open and certain counts in the totals; what own books say is not billed minus used.
    "breaks": """
SELECT
    breaks.*,
    if(breaks.state <> 'resolved' AND breaks.uncertain IS NULL
        AND breaks.own_source IS NULL, breaks.difference, NULL) AS open_difference
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month""",
    "break_rows": BREAK_ROWS,
    "decisions": OF_BREAKS.format(table="reconciliation.decisions", more=", breaks.currency"),
    "corrections": """
SELECT posted.* FROM reconciliation.corrections AS posted WHERE posted.posted_to = $month""",
}
# What is unbilled of all earlier months today, less what is posted to this month or a later one, is
# what was signed before, and what changed since without a correction. Amounts of two types are
# added, never in one column: DuckDB would round them.
OPENING: Final = """
WITH moves AS (
    SELECT
        signed.connection, signed.currency, signed.closing AS signed,
        if(list_contains($erased::VARCHAR[], left(sha256(signed.partner), 16)), '[erased]',
            signed.partner) AS partner
    FROM {previous} AS signed
    UNION ALL BY NAME
    SELECT used.connection, used.partner, used.currency, used.amount AS used
    FROM temp.used AS used
    WHERE used.month < $month
    UNION ALL BY NAME
    SELECT billed.connection, billed.partner, billed.currency, billed.amount AS billed
    FROM temp.billed AS billed
    WHERE billed.month < $month AND (billed.apart IS NULL OR billed.apart = 'credit note')
    UNION ALL BY NAME
    SELECT
        posted.connection, posted.partner, posted.currency,
        if(posted.side = 'usage', posted.difference, -posted.difference) AS posted
    FROM reconciliation.corrections AS posted
    WHERE posted.month < $month AND posted.posted_to >= $month
)
SELECT
    moves.connection, moves.partner, moves.currency, coalesce(sum(moves.signed), 0) AS opening,
    coalesce(sum(moves.used), 0) - coalesce(sum(moves.billed), 0)
        - coalesce(sum(moves.posted), 0) - coalesce(sum(moves.signed), 0) AS unposted
FROM moves
GROUP BY moves.connection, moves.partner, moves.currency
HAVING opening <> 0 OR unposted <> 0
"""
# What is no exception is balanced to the last digit. Its bill may be of another month.
BALANCED: Final = """
UNION ALL BY NAME
FROM (
    WITH pairs AS (
        SELECT
            used.connection, used.key, min(used.partner) AS partner, used.currency,
            count(*) AS used_rows, sum(used.quantity) AS used_quantity,
            sum(used.amount) AS used_amount
        FROM temp.used AS used
        ANTI JOIN reconciliation.exceptions AS pairs
            ON pairs.connection = used.connection AND pairs.key = used.key
        WHERE used.month = $month AND used.unread IS NULL
        GROUP BY used.connection, used.key, used.currency
    ), lines AS (
        SELECT
            billed.connection, billed.key, count(*) AS billed_rows,
            sum(billed.quantity) AS billed_quantity, sum(billed.amount) AS billed_amount,
            min(billed.partner) AS billed_partner
        FROM temp.billed AS billed
        SEMI JOIN pairs ON pairs.connection = billed.connection AND pairs.key = billed.key
        WHERE billed.apart IS NULL
        GROUP BY billed.connection, billed.key
    )
    SELECT
        pairs.*, lines.* EXCLUDE (connection, key),
        lines.billed_amount - pairs.used_amount AS difference, 'balanced' AS status
    FROM pairs
    JOIN lines USING (connection, key)
)
"""
USED_ROWS: Final = "SELECT count(*) FROM temp.used AS used WHERE used.month = $month"
NO_BALANCES: Final = """(
    SELECT
        NULL::VARCHAR AS connection, NULL::VARCHAR AS partner, NULL::VARCHAR AS currency,
        NULL::DECIMAL(38, 0) AS closing
    WHERE false
)"""
