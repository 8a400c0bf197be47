-- What is still to be paid by partner and currency: when it is due, and how much is in question. What is
-- overbilled of it, and what may be claimed of paid bills, are open breaks. Credit notes that are not
-- used up are apart. Those with the most overdue come first. A sum without a row is NULL.
WITH parts AS (
    SELECT
        bills.connection, bills.partner_id, bills.currency, 'open' AS part,
        bills.open_amount AS amount, bills.due_in, bills.days_overdue,
        coalesce(found.is_in_question, false) AS is_in_question
    FROM to_pay AS bills
    LEFT JOIN finance.bills_with_breaks AS found
        ON found.connection = bills.connection AND found.bill = bills.bill
    UNION ALL BY NAME
    SELECT
        breaks.connection, breaks.partner AS partner_id, breaks.currency, 'unpaid' AS part,
        withheld.amount
    FROM breaks
    JOIN withheld_breaks AS withheld USING (break_id)
    UNION ALL BY NAME
    SELECT
        breaks.connection, breaks.partner AS partner_id, breaks.currency, 'paid' AS part,
        nullif(breaks.difference - coalesce(withheld.amount, 0), 0) AS amount
    FROM breaks
    JOIN claim_breaks AS claims USING (break_id)
    LEFT JOIN withheld_breaks AS withheld USING (break_id)
    WHERE claims.reason = 'overbilled'
), sums AS (
    SELECT
        parts.connection, parts.partner_id, parts.currency,
        sum(parts.amount) FILTER (parts.part = 'open' AND parts.amount > 0) AS open,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.due_in = 'overdue') AS overdue,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.due_in = 'next 7 days') AS next_7,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.due_in = '8 to 30 days') AS next_30,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.due_in = 'later') AS later,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.due_in = 'no due date') AS undated,
        sum(parts.amount) FILTER (parts.amount > 0 AND parts.is_in_question) AS in_question,
        sum(parts.amount) FILTER (parts.part = 'unpaid') AS unpaid,
        sum(parts.amount) FILTER (parts.part = 'paid') AS paid,
        sum(parts.amount) FILTER (parts.part = 'open' AND parts.amount < 0) AS credited,
        count(*) FILTER (parts.part = 'open' AND parts.amount IS NULL) AS unknown,
        max(parts.days_overdue) FILTER (parts.amount > 0 AND parts.days_overdue > 0) AS oldest
    FROM parts
    GROUP BY ALL
)
SELECT
    sums.connection, coalesce(names.partner, sums.partner_id, 'no partner') AS partner,
    sums.partner_id, sums.currency, exact(sums.open) AS open, exact(sums.overdue) AS overdue,
    exact(sums.next_7) AS next_7, exact(sums.next_30) AS next_30, exact(sums.later) AS later,
    exact(sums.undated) AS undated, sums.oldest, exact(sums.in_question) AS in_question,
    exact(sums.unpaid) AS unpaid, exact(sums.credited) AS credited,
    exact(sums.paid) AS paid, nullif(sums.unknown, 0) AS unknown
FROM sums
LEFT JOIN finance.names AS names
    ON names.connection = sums.connection AND names.partner_id = sums.partner_id
WHERE getvariable('knows_payments') AND (sums.open IS NOT NULL OR sums.credited IS NOT NULL OR sums.unknown > 0
    OR sums.paid IS NOT NULL OR sums.unpaid IS NOT NULL)
ORDER BY sums.overdue DESC NULLS LAST, sums.open DESC NULLS LAST, partner, sums.partner_id,
    sums.connection, sums.currency
