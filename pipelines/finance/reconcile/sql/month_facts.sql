-- needs: exceptions unreferenced_lines break_facts doubts usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- What is known of each partner's month, whatever people decide about its breaks. `has_rows`: there is
-- more than breaks.
WITH usage AS (
    SELECT
        used.connection, used.partner, used.month, used.currency,
        count(*) AS used_rows,
        sum(used.quantity) AS used_quantity,
        sum(used.amount) AS used_amount
    FROM temp.used AS used
    GROUP BY ALL
), whole_bills AS (
    SELECT
        bills.connection, bills.partner, bills.month, bills.currency,
        count(*) FILTER (bills.apart IS NULL) AS bills,
        sum(bills.amount) FILTER (bills.apart IS NULL) AS billed_amount,
        sum(bills.amount) FILTER (bills.apart = 'credit note') AS credited_amount,
        sum(bills.amount) FILTER (bills.apart <> 'credit note') AS not_counted_amount
    FROM temp.bills AS bills
    GROUP BY ALL
), moved_amounts AS (
    -- A bill without a period is in the latest month of its lines: the others count in their own.
    SELECT
        lines.connection, lines.partner, lines.currency, lines.apart,
        unnest([lines.month, bills.month]) AS month,
        unnest([lines.amount, -lines.amount]) AS amount
    FROM temp.billed AS lines
    JOIN temp.bills AS bills USING (connection, _key)
    WHERE lines.month_from = 'usage' AND lines.month <> bills.month
        AND bills.amount IS NOT NULL
), moved_lines AS (
    SELECT
        moved.connection, moved.partner, moved.month, moved.currency,
        sum(moved.amount) FILTER (moved.apart IS NULL) AS billed_amount,
        sum(moved.amount) FILTER (moved.apart = 'credit note') AS credited_amount,
        sum(moved.amount) FILTER (moved.apart <> 'credit note') AS not_counted_amount
    FROM moved_amounts AS moved
    GROUP BY ALL
), lines_without_usage AS (
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
), pairs AS (
    -- Its rows are in this month, too; but for a row without a partner, beside one that has one. What is
    -- billed twice is a difference of the month of the second bill.
    SELECT
        exceptions.connection, exceptions.partner, exceptions.month, exceptions.currency,
        true AS is_break,
        exceptions.status NOT IN ('within tolerance', 'tentative', 'rounding', 'unreadable')
            AND NOT (exceptions.status = 'billed twice' AND exceptions.difference <> 0)
            AS is_wrong_pair,
        exceptions.status = 'tentative' AS is_tentative,
        if(exceptions.status = 'within tolerance', exceptions.difference, NULL) AS tolerated,
        if(exceptions.status = 'rounding', exceptions.difference, NULL) AS rounding
    FROM reconciliation.exceptions AS exceptions
    WHERE exceptions.status <> 'balanced'
), breaks AS (
    SELECT breaks.connection, breaks.partner, breaks.month, breaks.currency, true AS is_break
    FROM reconciliation.break_facts AS breaks
    WHERE breaks.gone_at IS NULL
), sources AS (
    FROM usage
    UNION ALL BY NAME FROM whole_bills
    UNION ALL BY NAME FROM moved_lines
    UNION ALL BY NAME FROM lines_without_usage
    UNION ALL BY NAME FROM pairs
    UNION ALL BY NAME FROM breaks
), sums AS (
    SELECT
        sources.connection, sources.partner, sources.month, sources.currency,
        coalesce(sum(sources.used_rows), 0)::BIGINT AS used_rows,
        sum(sources.used_quantity) AS used_quantity,
        sum(sources.used_amount) AS used_amount,
        coalesce(sum(sources.bills), 0)::BIGINT AS bills,
        sum(sources.billed_amount) AS billed_amount,
        sum(sources.fees) AS fees,
        sum(sources.credited_amount) AS credited_amount,
        sum(sources.not_counted_amount) AS not_counted_amount,
        sum(sources.tolerated) AS tolerated,
        sum(sources.rounding) AS rounding,
        sum(sources.without_usage) AS without_usage,
        coalesce(bool_or(sources.is_tentative), false) AS is_tentative,
        coalesce(bool_or(sources.is_wrong_pair), false) AS has_wrong_pair,
        bool_or(sources.is_break IS NULL) AS has_rows
    FROM sources
    GROUP BY sources.connection, sources.partner, sources.month, sources.currency
), judged AS (
    SELECT
        sums.*,
        partners.name AS partner_name,
        coalesce(sums.billed_amount, 0) + coalesce(sums.credited_amount, 0)
            - coalesce(sums.used_amount, 0) AS difference,
        difference - coalesce(sums.rounding, 0) AS exact,
        exact = 0 AS is_balanced,
        coalesce(exact = sums.without_usage, false) AS is_fees,
        -- Credit notes without usage take back fees, and explain no difference besides.
        exact - if(sums.fees < 0, sums.fees, greatest(coalesce(sums.without_usage, 0), 0))
            AS unexplained,
        coalesce(by_partner.month_minor, by_currency.month_minor, getvariable('month_minor'))
            * coalesce(currencies.minor_unit, 0.01) + abs(coalesce(sums.tolerated, 0)) AS allowed,
        sums.has_wrong_pair OR abs(unexplained) > allowed AS is_wrong
    FROM sums
    LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    LEFT JOIN tolerances AS by_partner ON by_partner.partner = sums.partner
    LEFT JOIN tolerances AS by_currency ON by_currency.currency = sums.currency
), doubted AS (
    SELECT DISTINCT judged.connection, judged.partner, judged.month, judged.currency
    FROM judged
    CROSS JOIN (
        SELECT DISTINCT doubts.any_partner, doubts.any_month, doubts.any_currency FROM doubts
    ) AS kinds
    JOIN doubts
        ON doubts.connection = judged.connection AND doubts.side <> 'partners'
        AND doubts.any_partner = kinds.any_partner AND doubts.any_month = kinds.any_month
        AND doubts.any_currency = kinds.any_currency
        AND doubts.doubt_partner IS NOT DISTINCT FROM if(kinds.any_partner, NULL, judged.partner)
        AND doubts.doubt_month IS NOT DISTINCT FROM if(kinds.any_month, NULL, judged.month)
        AND doubts.doubt_currency IS NOT DISTINCT FROM if(kinds.any_currency, NULL, judged.currency)
)
SELECT
    judged.connection, judged.partner, judged.month, judged.currency,
    judged.used_rows, judged.used_quantity, judged.used_amount,
    judged.bills, judged.billed_amount, judged.fees, judged.credited_amount,
    judged.not_counted_amount, judged.tolerated, judged.rounding, judged.partner_name,
    judged.difference, judged.exact, judged.is_tentative, judged.is_wrong, judged.is_balanced,
    judged.is_fees, judged.has_rows, doubted.connection IS NOT NULL AS is_doubted
FROM judged
LEFT JOIN doubted ON doubted.connection = judged.connection
    AND doubted.partner IS NOT DISTINCT FROM judged.partner
    AND doubted.month IS NOT DISTINCT FROM judged.month
    AND doubted.currency IS NOT DISTINCT FROM judged.currency
