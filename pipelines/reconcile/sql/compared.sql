-- kind: TEMP TABLE
-- needs: odd_keys
-- Rows of keys that are not plainly balanced.
SELECT
    sides.side, sides.connection, sides.key, sides.partner, sides.month, sides.id, sides.bill,
    sides.number, sides.apart, sides.quantity, sides.amount, sides.recorded_at, sides.updated_at,
    sides.issued_at, sides._scan_id, sides._page, sides._row,
    -- A row without a currency is in that of its usage, or of another row of its key.
    coalesce(
        sides.currency, min(sides.currency) FILTER (sides.side = 'usage') OVER one,
        min(sides.currency) OVER one
    ) AS currency,
    known.partner IS NULL AND sides.partner IS NOT NULL AS is_stranger
FROM sides
SEMI JOIN odd_keys USING (hash)
LEFT JOIN known_partners AS known USING (connection, partner)
WINDOW one AS (PARTITION BY sides.connection, sides.key)
