-- kind: TEMP TABLE
-- needs: unreadable
-- What unreadable records may be, once each; NULL where it may be anything. `amount` is the smallest
-- one that they may have. `no_quantity`: with the amount of one of them, no quantity was counted.
SELECT
    records.side, records.connection, records.any_partner, records.any_month, records.any_currency,
    if(records.any_partner, NULL, records.partner) AS doubt_partner,
    if(records.any_month, NULL, records.month) AS doubt_month,
    if(records.any_currency, NULL, records.currency) AS doubt_currency,
    min(if(records.any_amount, 0, coalesce(abs(records.amount), 0))) AS amount,
    bool_or(regexp_matches(records.roles, '(^|,)(line_)?quantity($|,)')) AS no_quantity
FROM reconciliation.unreadable AS records
GROUP BY ALL
