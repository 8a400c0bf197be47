-- Months of partners of which usage or bills are others than before: those that are closed since their
-- close, all others since the previous books, where there are some. Closed months come first, then
-- those that are over; of these the largest changes of each currency.
-- needs: currencies
WITH closed AS (
    -- Of the connections that were closed: a month may be closed for some only.
    SELECT cut_offs.connection, closes.month, max(closes.closed_at) AS closed_at
    FROM reconciliation.closed_months AS closes
    JOIN reconciliation.cut_offs AS cut_offs
        ON cut_offs.month = closes.month AND cut_offs.is_closed
    WHERE NOT closes.is_reopened
    GROUP BY cut_offs.connection, closes.month
), due AS (
    SELECT cut_offs.connection, cut_offs.month, bool_and(cut_offs.cut_off IS NOT NULL) AS is_due
    FROM reconciliation.cut_offs AS cut_offs
    GROUP BY cut_offs.connection, cut_offs.month
), amounts AS (
    SELECT
        now.connection, now.partner, now.month, now.currency, now.used, now.billed
    FROM month_amounts AS now
    UNION ALL BY NAME
    SELECT
        earlier.connection, earlier.partner, earlier.month, earlier.currency,
        earlier.used AS used_earlier, earlier.billed AS billed_earlier
    FROM earlier_amounts AS earlier
    UNION ALL BY NAME
    SELECT
        changes.connection, changes.partner, changes.month, changes.currency,
        if(changes.side = 'usage', changes.amount_now, NULL) AS used_now,
        if(changes.side = 'usage', changes.amount_then, NULL) AS used_then,
        if(changes.side = 'billing', changes.amount_now, NULL) AS billed_now,
        if(changes.side = 'billing', changes.amount_then, NULL) AS billed_then
    FROM reconciliation.changed_records AS changes
    WHERE NOT (changes.is_otherwise OR changes.is_unread)
), sums AS (
    SELECT
        amounts.connection, amounts.partner, amounts.month, amounts.currency,
        coalesce(sum(amounts.used), 0) AS used, coalesce(sum(amounts.billed), 0) AS billed,
        coalesce(sum(amounts.used_earlier), 0) AS used_earlier,
        coalesce(sum(amounts.billed_earlier), 0) AS billed_earlier,
        coalesce(sum(amounts.used_now), 0) - coalesce(sum(amounts.used_then), 0) AS used_since,
        coalesce(sum(amounts.billed_now), 0) - coalesce(sum(amounts.billed_then), 0)
            AS billed_since
    FROM amounts
    GROUP BY amounts.connection, amounts.partner, amounts.month, amounts.currency
), changed AS (
    SELECT
        sums.connection, sums.partner, sums.month, sums.currency, sums.used, sums.billed,
        closed.closed_at,
        -- Differences: in one column, amounts of two types would be rounded.
        if(closed.month IS NULL, sums.used - sums.used_earlier, NULL) AS used_change,
        if(closed.month IS NULL, sums.billed - sums.billed_earlier, NULL) AS billed_change,
        if(closed.month IS NULL, NULL, sums.used_since) AS used_since,
        if(closed.month IS NULL, NULL, sums.billed_since) AS billed_since
    FROM sums
    LEFT JOIN closed USING (connection, month)
    WHERE closed.month IS NOT NULL OR getvariable('has_earlier')
)
SELECT changed.*, partners.name
FROM changed
LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
LEFT JOIN due USING (connection, month)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM changed.currency
WHERE changed.used_change <> 0 OR changed.billed_change <> 0
    OR changed.used_since <> 0 OR changed.billed_since <> 0
ORDER BY
    changed.closed_at IS NULL, due.is_due IS NOT TRUE, currencies.place, changed.currency,
    list_max(list_transform(
        [changed.used_change::DOUBLE, changed.billed_change, changed.used_since,
            changed.billed_since],
        lambda change: abs(change)
    )) DESC,
    changed.month DESC, changed.connection, changed.partner
