-- question: Which keys are not plainly balanced?
-- needs: match
-- remedy: none
-- One used record that one line bills to the last digit is plainly balanced, and so is a partner's
-- month of equal sums: only the other keys are compared column by column. A hash of a key costs a
-- tenth of the key.
WITH rows AS (
    SELECT
        hash(used.connection, used.key) AS key, 1 AS sign, used.quantity, used.amount,
        hash(used.partner, used.currency) AS whose, used.month,
        strangers.partner IS NOT NULL AS is_odd
    FROM reconciliation.used AS used
    LEFT JOIN strangers
        ON strangers.partner = used.partner AND strangers.connection = used.connection
    UNION ALL
    SELECT
        hash(billed.connection, billed.key), -1, billed.quantity, billed.amount,
        hash(billed.partner, billed.currency), billed.month,
        strangers.partner IS NOT NULL OR billed.apart IS NOT NULL
    FROM reconciliation.billed AS billed
    LEFT JOIN strangers
        ON strangers.partner = billed.partner AND strangers.connection = billed.connection
    WHERE billed.key IS NOT NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
)
SELECT rows.key
FROM rows
GROUP BY rows.key
HAVING bool_or(rows.is_odd) OR min(rows.sign) = max(rows.sign)
    OR NOT getvariable('has_amount') OR sum(rows.sign * rows.amount) <> 0
    OR (getvariable('has_quantity') AND sum(rows.sign * rows.quantity) <> 0)
    OR CASE getvariable('match_by')
        WHEN 'month' THEN (min(rows.month) + INTERVAL 1 MONTH)::DATE + getvariable('grace_days')
            > getvariable('as_of')::DATE
        ELSE count(*) <> 2 OR bit_xor(rows.whose) <> 0 OR count(rows.amount) = 1
            OR (getvariable('has_quantity') AND count(rows.quantity) = 1) END
