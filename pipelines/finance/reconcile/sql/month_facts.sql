-- needs: exceptions unreferenced_lines break_facts doubts usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- What is known of each partner's month, whatever people decide about its breaks. `has_rows`: there is
-- more than breaks.
WITH sides AS (
    SELECT
        used.connection, used.partner, used.month, used.currency, count(*) AS used_rows,
        sum(used.quantity) AS used_quantity, sum(used.amount) AS used_amount
    FROM temp.used AS used
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        bills.connection, bills.partner, bills.month, bills.currency,
        count(*) FILTER (bills.apart IS NULL) AS bills,
        sum(bills.amount) FILTER (bills.apart IS NULL) AS billed_amount,
        sum(bills.amount) FILTER (bills.apart = 'credit note') AS credited_amount,
        sum(bills.amount) FILTER (bills.apart <> 'credit note') AS not_counted_amount
    FROM temp.bills AS bills
    GROUP BY ALL
    UNION ALL BY NAME
    -- A bill without a period is in the latest month of its lines: the others count in their own.
    SELECT
        moved.connection, moved.partner, moved.month, moved.currency,
        sum(moved.amount) FILTER (moved.apart IS NULL) AS billed_amount,
        sum(moved.amount) FILTER (moved.apart = 'credit note') AS credited_amount,
        sum(moved.amount) FILTER (moved.apart <> 'credit note') AS not_counted_amount
    FROM (
        SELECT
            lines.connection, lines.partner, lines.currency, lines.apart,
            unnest([lines.month, bills.month]) AS month,
            unnest([lines.amount, -lines.amount]) AS amount
        FROM temp.billed AS lines
        JOIN temp.bills AS bills USING (connection, _key)
        WHERE lines.month_from = 'usage' AND lines.month <> bills.month
            AND bills.amount IS NOT NULL
    ) AS moved
    GROUP BY ALL
    UNION ALL BY NAME
    -- What a total and its lines differ by may be rounding, as it may be of a pair.
    SELECT
        lines.connection, lines.partner, lines.month, lines.currency,
        nullif(sum(lines.amount) FILTER (lines.is_rounding), 0) AS rounding,
        sum(lines.amount) FILTER (lines.apart IS NULL AND NOT lines.is_rounding) AS fees,
        coalesce(fees, 0) + least(coalesce(sum(lines.amount) FILTER (
            lines.apart IS NOT NULL AND NOT lines.is_rounding), 0), 0) AS without_usage
    FROM unreferenced_lines AS lines
    WHERE lines.unread IS NULL
    GROUP BY ALL
    UNION ALL BY NAME
    -- Its rows are in this month, too; but for a row without a partner, beside one that has one. What is
    -- billed twice is a difference of the month of the second bill.
    SELECT
        exceptions.connection, exceptions.partner, exceptions.month, exceptions.currency,
        true AS is_break,
        exceptions.status NOT IN ('within tolerance', 'tentative', 'rounding', 'unreadable')
            AND NOT (exceptions.status = 'billed twice' AND exceptions.difference <> 0) AS is_wrong,
        exceptions.status = 'tentative' AS is_tentative,
        if(exceptions.status = 'within tolerance', exceptions.difference, NULL) AS tolerated,
        if(exceptions.status = 'rounding', exceptions.difference, NULL) AS rounding
    FROM reconciliation.exceptions AS exceptions
    WHERE exceptions.status <> 'balanced'
    UNION ALL BY NAME
    SELECT
        breaks.connection, breaks.partner, breaks.month, breaks.currency, true AS is_break
    FROM reconciliation.break_facts AS breaks
    WHERE breaks.gone_at IS NULL
), found AS (
    SELECT
        sides.connection, sides.partner, sides.month, sides.currency,
        coalesce(sum(sides.used_rows), 0)::BIGINT AS used_rows,
        sum(sides.used_quantity) AS used_quantity,
        sum(sides.used_amount) AS used_amount,
        coalesce(sum(sides.bills), 0)::BIGINT AS bills,
        sum(sides.billed_amount) AS billed_amount,
        sum(sides.fees) AS fees,
        sum(sides.credited_amount) AS credited_amount,
        sum(sides.not_counted_amount) AS not_counted_amount,
        sum(sides.tolerated) AS tolerated,
        sum(sides.rounding) AS rounding,
        partners.name AS partner_name,
        coalesce(sum(sides.billed_amount), 0) + coalesce(sum(sides.credited_amount), 0)
            - coalesce(sum(sides.used_amount), 0) AS difference,
        difference - coalesce(sum(sides.rounding), 0) AS exact,
        coalesce(bool_or(sides.is_tentative), false) AS is_tentative,
        -- Credit notes without usage take back fees, and explain no difference besides.
        if(sum(sides.fees) < 0, sum(sides.fees), greatest(coalesce(sum(sides.without_usage), 0), 0))
            AS explained,
        coalesce(bool_or(sides.is_wrong), false) OR abs(exact - explained)
            > coalesce(any_value(by_partner.month_minor), any_value(by_currency.month_minor),
                getvariable('month_minor')) * coalesce(any_value(currencies.minor_unit), 0.01)
            + abs(coalesce(sum(sides.tolerated), 0)) AS is_wrong,
        exact = 0 AS is_balanced, coalesce(exact = sum(sides.without_usage), false) AS is_fees,
        bool_or(sides.is_break IS NULL) AS has_rows
    FROM sides
    LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    LEFT JOIN tolerances AS by_partner ON by_partner.partner = sides.partner
    LEFT JOIN tolerances AS by_currency ON by_currency.currency = sides.currency
    GROUP BY sides.connection, sides.partner, sides.month, sides.currency, partners.name
), doubted AS (
    SELECT DISTINCT found.connection, found.partner, found.month, found.currency
    FROM found
    CROSS JOIN (
        SELECT DISTINCT doubts.any_partner, doubts.any_month, doubts.any_currency FROM doubts
    ) AS kinds
    JOIN doubts
        ON doubts.connection = found.connection AND doubts.side <> 'partners'
        AND doubts.any_partner = kinds.any_partner AND doubts.any_month = kinds.any_month
        AND doubts.any_currency = kinds.any_currency
        AND doubts.doubt_partner IS NOT DISTINCT FROM if(kinds.any_partner, NULL, found.partner)
        AND doubts.doubt_month IS NOT DISTINCT FROM if(kinds.any_month, NULL, found.month)
        AND doubts.doubt_currency IS NOT DISTINCT FROM if(kinds.any_currency, NULL, found.currency)
)
SELECT found.* EXCLUDE (explained), doubted.connection IS NOT NULL AS is_doubted
FROM found
LEFT JOIN doubted ON doubted.connection = found.connection
    AND doubted.partner IS NOT DISTINCT FROM found.partner
    AND doubted.month IS NOT DISTINCT FROM found.month
    AND doubted.currency IS NOT DISTINCT FROM found.currency
