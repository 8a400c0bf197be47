-- question: Does each used record, or each partner's month, agree with what is billed?
-- needs: match
-- remedy: See the breaks of the partner and month.
WITH known AS (
    SELECT DISTINCT partners.connection, partners.partner FROM reconciliation.partners AS partners
), used AS (
    SELECT
        used.connection,
        used.key,
        any_value(used.partner) AS partner,
        any_value(used.currency) AS currency,
        min(used.month) AS month,
        count(*) AS rows,
        sum(used.quantity) AS quantity,
        sum(used.amount) AS amount
    FROM odd_used AS used
    GROUP BY used.connection, used.key
), lines AS (
    SELECT
        billed.*,
        billed.currency <> coalesce(used.currency, min(billed.currency) OVER one) AS is_foreign
    FROM odd_billed AS billed
    LEFT JOIN used ON used.connection = billed.connection AND used.key = billed.key
    WHERE billed.key IS NOT NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
    WINDOW one AS (PARTITION BY billed.connection, billed.key)
), billed AS (
    SELECT
        billed.connection,
        billed.key,
        min(billed.partner) AS partner,
        max(billed.partner) AS last_partner,
        min(billed.currency) AS currency,
        max(billed.currency) AS last_currency,
        min(billed.month) AS month,
        count(*) FILTER (billed.apart IS NULL) AS rows,
        count(*) > count(billed.amount) AS is_unknown,
        sum(billed.quantity) AS quantity,
        -- Amounts of two currencies are never added: what is in another one does not count here.
        sum(billed.amount) FILTER (billed.apart IS NULL AND is_foreign IS NOT true) AS amount,
        sum(billed.amount) FILTER (billed.apart IS NOT NULL AND is_foreign IS NOT true) AS credited
    FROM lines AS billed
    GROUP BY billed.connection, billed.key
), pairs AS (
    SELECT
        coalesce(used.connection, billed.connection) AS connection,
        coalesce(used.key, billed.key) AS key,
        coalesce(used.partner, billed.partner) AS partner,
        if(billed.partner <> used.partner, billed.partner, billed.last_partner) AS billed_partner,
        coalesce(used.month, billed.month) AS month,
        coalesce(used.currency, billed.currency) AS currency,
        if(billed.currency <> used.currency, billed.currency, billed.last_currency)
            AS billed_currency,
        coalesce(used.rows, 0) AS used_rows,
        coalesce(billed.rows, 0) AS billed_rows,
        used.quantity AS used_quantity,
        billed.quantity AS billed_quantity,
        used.amount AS used_amount,
        billed.amount AS billed_amount,
        billed.credited AS credited_amount,
        coalesce(billed.amount, 0) + coalesce(billed.credited, 0) - coalesce(used.amount, 0)
            AS difference,
        greatest(
            getvariable('line_minor') * coalesce(currencies.minor_unit, 0.01),
            getvariable('line_share') * abs(used.amount)
        ) AS tolerance,
        billed.is_unknown
    FROM used
    FULL JOIN billed ON billed.connection = used.connection AND billed.key = used.key
    LEFT JOIN reconciliation.currencies AS currencies
        ON currencies.currency = coalesce(used.currency, billed.currency)
)
SELECT
    pairs.* EXCLUDE (tolerance, is_unknown),
    CASE
        WHEN getvariable('has_partners') AND (
            used.partner IS NULL OR (pairs.billed_partner IS NOT NULL AND billed.partner IS NULL)
        ) THEN 'unknown partner'
        WHEN (pairs.month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days')
            > getvariable('as_of')::DATE
            AND (pairs.billed_rows = 0 OR getvariable('match_by') = 'month') THEN 'tentative'
        WHEN pairs.billed_rows = 0 THEN 'not billed'
        WHEN pairs.used_rows = 0 THEN 'not used'
        -- Lines that share one record, and do not add up to more than it, bill it once.
        WHEN getvariable('match_by') = 'usage' AND pairs.billed_rows > pairs.used_rows
            AND (NOT getvariable('has_amount') OR pairs.is_unknown OR (
                abs(pairs.difference) > pairs.tolerance
                AND sign(pairs.difference) <> -sign(coalesce(pairs.used_amount, 0))
            )) THEN 'billed twice'
        WHEN pairs.billed_partner <> pairs.partner THEN 'other partner'
        WHEN pairs.billed_currency <> pairs.currency THEN 'other currency'
        WHEN getvariable('has_quantity') AND pairs.used_quantity
            IS DISTINCT FROM pairs.billed_quantity THEN 'other quantity'
        WHEN NOT getvariable('has_amount') THEN 'not evaluated'
        WHEN (pairs.used_amount IS NULL) <> (pairs.billed_amount IS NULL) THEN 'other amount'
        WHEN pairs.difference = 0 THEN 'balanced'
        WHEN abs(pairs.difference) <= pairs.tolerance THEN 'within tolerance'
        ELSE 'other amount'
    END AS status
FROM pairs
LEFT JOIN known AS used
    ON used.connection = pairs.connection AND used.partner = pairs.partner
LEFT JOIN known AS billed
    ON billed.connection = pairs.connection AND billed.partner = pairs.billed_partner
