-- question: Which used records, or partners' months, may differ from what is billed?
-- needs: compared
-- remedy: See the breaks of the partner and month.
-- Amounts of two currencies are never added: each currency of a key is a pair of its own.
WITH pairs AS (
    SELECT
        rows.connection,
        rows.key,
        coalesce(min(rows.partner) FILTER (rows.side = 'usage'), min(rows.partner)) AS partner,
        min(rows.partner) FILTER (rows.side = 'billing') AS first_partner,
        max(rows.partner) FILTER (rows.side = 'billing') AS last_partner,
        coalesce(min(rows.month) FILTER (rows.side = 'usage'), min(rows.month)) AS month,
        rows.currency,
        count(*) FILTER (rows.side = 'usage') AS used_rows,
        count(*) FILTER (rows.side = 'billing' AND rows.apart IS NULL) AS billed_rows,
        sum(rows.quantity) FILTER (rows.side = 'usage') AS used_quantity,
        sum(rows.quantity) FILTER (rows.side = 'billing') AS billed_quantity,
        sum(rows.amount) FILTER (rows.side = 'usage') AS used_amount,
        sum(rows.amount) FILTER (rows.side = 'billing' AND rows.apart IS NULL) AS billed_amount,
        sum(rows.amount) FILTER (rows.apart IS NOT NULL) AS credited_amount,
        coalesce(billed_amount, 0) + coalesce(credited_amount, 0) - coalesce(used_amount, 0)
            AS difference,
        greatest(
            getvariable('line_minor') * coalesce(min(currencies.minor_unit), 0.01),
            getvariable('line_share') * abs(used_amount)
        ) AS tolerance,
        bool_or(rows.side = 'billing' AND rows.amount IS NULL) AS is_unknown,
        bool_or(rows.is_stranger) AS has_stranger,
        used_rows = 0 AND difference = 0 AND credited_amount <> 0 AS is_taken_back,
        sum(used_rows) OVER one > 0
            AND sum(if(is_taken_back, 0, billed_rows)) OVER one > 0 AS has_both
    FROM compared AS rows
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    GROUP BY rows.connection, rows.key, rows.currency
    WINDOW one AS (PARTITION BY rows.connection, rows.key)
)
SELECT
    pairs.* EXCLUDE (
        first_partner, last_partner, tolerance, is_unknown, has_stranger, is_taken_back, has_both
    ),
    if(pairs.first_partner <> pairs.partner, pairs.first_partner, pairs.last_partner)
        AS billed_partner,
    CASE
        WHEN getvariable('has_partners') AND (pairs.partner IS NULL OR pairs.has_stranger)
            THEN 'unknown partner'
        WHEN (pairs.month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days') > (
                SELECT max(loads.ended_at)::DATE FROM meta.loads AS loads
                WHERE loads.connection = pairs.connection
                    AND loads.stream IN ('partners', 'usage', 'billing')
            ) AND (pairs.billed_rows = 0 OR getvariable('match_by') = 'month') THEN 'tentative'
        WHEN pairs.is_taken_back THEN 'balanced'
        WHEN pairs.has_both AND (pairs.used_rows = 0 OR pairs.billed_rows = 0)
            THEN 'other currency'
        WHEN pairs.used_rows = 0 THEN 'not used'
        WHEN pairs.billed_rows = 0 THEN 'not billed'
        -- Lines that share one record, and do not add up to more than it, bill it once.
        WHEN getvariable('match_by') = 'usage' AND pairs.billed_rows > pairs.used_rows
            AND (NOT getvariable('has_amount') OR pairs.is_unknown OR (
                abs(pairs.difference) > pairs.tolerance
                AND sign(pairs.difference) <> -sign(coalesce(pairs.used_amount, 0))
            )) THEN 'billed twice'
        WHEN billed_partner <> pairs.partner THEN 'other partner'
        WHEN getvariable('has_quantity') AND pairs.used_quantity
            IS DISTINCT FROM pairs.billed_quantity THEN 'other quantity'
        WHEN NOT getvariable('has_amount') THEN 'not evaluated'
        WHEN (pairs.used_amount IS NULL) <> (pairs.billed_amount IS NULL) THEN 'other amount'
        WHEN pairs.difference = 0 THEN 'balanced'
        WHEN abs(pairs.difference) <= pairs.tolerance THEN 'within tolerance'
        ELSE 'other amount'
    END AS status
FROM pairs
