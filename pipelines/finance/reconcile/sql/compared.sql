-- kind: TEMP TABLE
-- needs: match
-- Rows of keys that are not plainly balanced: only they are compared one by one. One used record that
-- one line bills to the last digit is plainly balanced, and so is a partner's month of equal sums.
-- A hash of a key costs a tenth of the key.
-- `is_credited`: a line that a credit note takes back in full, and that line of the note. It takes back
-- the last bill before it that has the same amount for the same partner.
WITH odd_keys AS (
    SELECT sides.hash
    FROM sides
    LEFT JOIN reconciliation.partners AS known USING (connection, partner)
    LEFT JOIN read_until USING (connection)
    GROUP BY sides.hash
    HAVING bool_or(sides.apart IS NOT NULL) OR bool_or(sides.unread IS NOT NULL)
        OR NOT getvariable('has_amount')
        OR (getvariable('has_partners') AND count(*) > count(known.partner))
        OR CASE getvariable('match_by')
            WHEN 'usage' THEN count(*) <> 2 OR count(*) FILTER (sides.side = 'usage') <> 1
                OR bit_xor(hash(sides.partner, sides.currency, sides.amount,
                    if(getvariable('has_quantity'), sides.quantity, NULL))) <> 0
            ELSE min(sides.side) = max(sides.side)
                OR (min(sides.month) + INTERVAL 1 MONTH)::DATE + getvariable('grace_days')
                    > min(read_until.day)
                OR sum(if(sides.side = 'usage', sides.amount, -sides.amount)) <> 0
                OR (getvariable('has_quantity')
                    AND sum(if(sides.side = 'usage', sides.quantity, -sides.quantity)) <> 0) END
), counted AS (
    SELECT
        sides.side, sides.connection, sides.key, sides.partner, sides.month, sides.id, sides.bill,
        sides.number, sides.apart, sides.unseen, sides.quantity, sides.amount, sides.recorded_at,
        sides.updated_at, sides.issued_at, sides._scan_id, sides._page, sides._row,
        -- A blank currency is another one: in months, the row does not count in that of its usage.
        sides.currency,
        known.partner IS NULL AND sides.partner IS NOT NULL AS is_stranger,
        -- Of a month, what can be read is compared, and its breaks are marked.
        getvariable('match_by') = 'usage' AND bool_or(sides.unread IS NOT NULL) OVER one
            AS is_unread,
        if(sides.apart IS NULL, sides.amount, -sides.amount) AS of_line,
        -- Lines of this amount so far that no note takes back; below zero, notes without a line.
        sum(if(sides.apart IS NULL, 1, -1)) OVER (alike ROWS UNBOUNDED PRECEDING) AS left_over
    FROM sides
    SEMI JOIN odd_keys USING (hash)
    LEFT JOIN reconciliation.partners AS known USING (connection, partner)
    WINDOW one AS (PARTITION BY sides.connection, sides.key), alike AS (
        PARTITION BY sides.connection, sides.key, sides.currency, sides.partner, sides.side, of_line
        ORDER BY sides.issued_at, sides.apart NULLS FIRST, sides.number, sides.bill, sides.id
    )
)
SELECT
    counted.* EXCLUDE (of_line, left_over),
    coalesce(counted.of_line <> 0 AND CASE
        WHEN counted.apart IS NULL THEN counted.left_over > min(counted.left_over)
            OVER (alike ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
        ELSE counted.left_over >= least(0, min(counted.left_over)
            OVER (alike ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) END, false) AS is_credited
FROM counted
WINDOW alike AS (
    PARTITION BY counted.connection, counted.key, counted.currency, counted.partner, counted.side,
        counted.of_line
    ORDER BY counted.issued_at, counted.apart NULLS FIRST, counted.number, counted.bill, counted.id
)
