-- kind: TEMP TABLE
-- needs: match
-- Keys that are not plainly balanced: only their rows are compared one by one. One used record that
-- one line bills to the last digit is plainly balanced, and so is a partner's month of equal sums.
-- A hash of a key costs a tenth of the key.
SELECT sides.hash
FROM sides
LEFT JOIN known_partners AS known USING (connection, partner)
GROUP BY sides.hash
HAVING bool_or(sides.apart IS NOT NULL) OR NOT getvariable('has_amount')
    OR (getvariable('has_partners') AND count(*) > count(known.partner))
    OR CASE getvariable('match_by')
        WHEN 'usage' THEN count(*) <> 2 OR count(*) FILTER (sides.side = 'usage') <> 1
            OR bit_xor(hash(sides.partner, sides.currency, sides.amount,
                if(getvariable('has_quantity'), sides.quantity, NULL))) <> 0
        ELSE min(sides.side) = max(sides.side)
            OR (min(sides.month) + INTERVAL 1 MONTH)::DATE + getvariable('grace_days')
                > getvariable('as_of')::DATE
            OR sum(if(sides.side = 'usage', sides.amount, -sides.amount)) <> 0
            OR (getvariable('has_quantity')
                AND sum(if(sides.side = 'usage', sides.quantity, -sides.quantity)) <> 0) END
