-- question: Which used records, or partners' months, may differ from what is billed?
-- needs: compared
-- remedy: See the breaks of the partner and month.
-- `status` says how a pair differs; the rules (`sql/rules/`) only select by it.
-- Amounts of two currencies are never added: each currency of a key is a pair of its own.
-- A difference below a thousandth of the smallest unit is rounding, while a partner's month of them
-- stays below that unit. Quantities are equal in 12 digits: a service may count them in floats.
WITH pairs AS (
    SELECT
        rows.connection,
        rows.key,
        coalesce(min(rows.partner) FILTER (rows.side = 'usage'), min(rows.partner)) AS partner,
        min(rows.partner) FILTER (rows.side = 'billing' AND NOT rows.is_credited) AS first_partner,
        max(rows.partner) FILTER (rows.side = 'billing' AND NOT rows.is_credited) AS last_partner,
        coalesce(min(rows.month) FILTER (rows.side = 'usage'), min(rows.month)) AS month,
        rows.currency,
        count(*) FILTER (rows.side = 'usage') AS used_rows,
        count(*) FILTER (rows.side = 'billing' AND rows.apart IS NULL) AS billed_rows,
        count(*) FILTER (rows.side = 'billing' AND rows.apart IS NULL AND NOT rows.is_credited)
            AS standing_rows,
        sum(rows.quantity) FILTER (rows.side = 'usage') AS used_quantity,
        sum(rows.quantity) FILTER (rows.side = 'billing') AS billed_quantity,
        sum(rows.amount) FILTER (rows.side = 'usage') AS used_amount,
        sum(rows.amount) FILTER (rows.side = 'billing' AND rows.apart IS NULL) AS billed_amount,
        sum(rows.amount) FILTER (rows.apart IS NOT NULL) AS credited_amount,
        coalesce(billed_amount, 0) + coalesce(credited_amount, 0) - coalesce(used_amount, 0)
            AS difference,
        min(currencies.minor_unit) AS minor_unit,
        coalesce(
            used_rows > 0 AND count(*) FILTER (rows.side = 'billing') > 0 AND difference <> 0
                AND TRY_CAST(abs(difference) AS DECIMAL(38, 18)) < min(currencies.minor_unit) * 0.001,
            false
        ) AS is_rounding,
        bool_or(rows.side = 'billing' AND rows.amount IS NULL) AS is_unknown,
        bool_or(rows.is_stranger) AS has_stranger,
        getvariable('names_partner') AND count(*) > count(rows.partner) AS lacks_partner,
        bool_or(rows.is_unread) AS is_unread,
        -- By a credit note of the same partner.
        used_rows = 0 AND difference = 0 AND credited_amount <> 0
            AND min(rows.partner) IS NOT DISTINCT FROM max(rows.partner) AS is_taken_back,
        sum(used_rows) OVER one > 0
            AND sum(if(is_taken_back, 0, billed_rows)) OVER one > 0 AS has_both
    FROM compared AS rows
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    GROUP BY rows.connection, rows.key, rows.currency
    WINDOW one AS (PARTITION BY rows.connection, rows.key)
), tolerant AS (
    SELECT
        pairs.*,
        -- A difference that is too large for this type is larger than any tolerance.
        coalesce(TRY_CAST(abs(pairs.difference) AS DECIMAL(38, 16)) <= greatest(
            coalesce(by_partner.line_minor, by_currency.line_minor, getvariable('line_minor'))
                * coalesce(pairs.minor_unit, 0.01),
            coalesce(by_partner.line_share, by_currency.line_share, getvariable('line_share'))
                ::DECIMAL(10, 8) * TRY_CAST(abs(pairs.used_amount) AS DECIMAL(28, 8))
        ), false) AS is_tolerated
    FROM pairs
    LEFT JOIN tolerances AS by_partner ON by_partner.partner = pairs.partner
    LEFT JOIN tolerances AS by_currency ON by_currency.currency = pairs.currency
), judged AS (
    SELECT
        pairs.*,
        if(pairs.first_partner <> pairs.partner, pairs.first_partner, pairs.last_partner)
            AS billed_partner,
        getvariable('match_by') = 'month' AS is_month,
        getvariable('has_partners')
            AND (pairs.partner IS NULL OR pairs.has_stranger OR pairs.lacks_partner)
            AS has_unknown_partner,
        -- A month that is more than a month ahead is a wrong one: it would never be due.
        (pairs.month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days') > read_until.day
            AND pairs.month <= read_until.day + INTERVAL 1 MONTH
            AND (pairs.billed_rows = 0 OR is_month) AS may_be_billed_later,
        pairs.has_both AND (pairs.used_rows = 0 OR pairs.billed_rows = 0) AS has_other_currency,
        -- Lines that share one record, and do not add up to more than it, bill it once.
        NOT pairs.is_rounding AND NOT pairs.is_tolerated
            AND sign(pairs.difference) <> -sign(coalesce(pairs.used_amount, 0)) AS is_too_much,
        NOT is_month AND pairs.standing_rows > pairs.used_rows
            AND (NOT getvariable('has_amount') OR pairs.is_unknown OR is_too_much)
            AS is_billed_twice,
        -- A credit note may lower the price of what it names, and not its quantity.
        pairs.difference = 0 AND coalesce(pairs.credited_amount, 0) <> 0 AS is_settled_by_credit,
        abs(pairs.used_quantity - pairs.billed_quantity)::DOUBLE
            <= 1e-12 * abs(pairs.used_quantity)::DOUBLE AS is_same_quantity,
        getvariable('has_quantity') AND pairs.used_quantity <> pairs.billed_quantity
            AND NOT is_settled_by_credit AND is_same_quantity IS NOT TRUE AS has_other_quantity,
        (pairs.used_amount IS NULL) <> (pairs.billed_amount IS NULL) AS lacks_one_amount,
        -- The order counts: the first condition that holds decides. First comes what nobody can
        -- judge, or not yet; then what one side lacks; then what differs though both sides are there.
        CASE
            WHEN pairs.is_unread THEN 'unreadable'
            WHEN has_unknown_partner THEN 'unknown partner'
            WHEN may_be_billed_later THEN 'tentative'
            WHEN pairs.is_taken_back THEN 'balanced'
            WHEN has_other_currency THEN 'other currency'
            WHEN pairs.used_rows = 0 THEN 'not used'
            WHEN pairs.billed_rows = 0 THEN 'not billed'
            WHEN is_billed_twice THEN 'billed twice'
            WHEN billed_partner <> pairs.partner THEN 'other partner'
            WHEN has_other_quantity THEN 'other quantity'
            WHEN NOT getvariable('has_amount') THEN 'not evaluated'
            WHEN lacks_one_amount THEN 'other amount'
            WHEN pairs.difference = 0 THEN 'balanced'
            WHEN pairs.is_rounding THEN 'rounding'
            WHEN pairs.is_tolerated THEN 'within tolerance'
            ELSE 'other amount'
        END AS status
    FROM tolerant AS pairs
    LEFT JOIN read_until ON read_until.connection = pairs.connection
)
SELECT
    judged.connection, judged.key, judged.partner, judged.month, judged.currency,
    judged.used_rows, judged.billed_rows, judged.used_quantity, judged.billed_quantity,
    judged.used_amount, judged.billed_amount, judged.credited_amount, judged.difference,
    judged.billed_partner,
    if(judged.status = 'rounding' AND abs(sum(judged.difference)
        FILTER (judged.status = 'rounding') OVER one) >= judged.minor_unit,
        'rounding adds up', judged.status) AS status
FROM judged
WINDOW one AS (
    PARTITION BY judged.connection, judged.partner, judged.month, judged.currency
)
