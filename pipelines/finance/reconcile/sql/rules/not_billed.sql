-- question: Is all usage of a month on a bill, once the bills are due?
-- label: Unbilled usage
-- needs: exceptions usage.partner usage.period
-- rests on: billing
-- remedy: Request the missing bill, or late usage on the next one. Find out what a bill lacks.
WITH new_values AS (
    SELECT billed.connection, billed.key, min(billed.unseen) AS value
    FROM temp.billed AS billed
    WHERE billed.unseen IS NOT NULL AND billed.apart IS NOT NULL AND billed.key IS NOT NULL
    GROUP BY billed.connection, billed.key
), issued AS (
    SELECT bills.connection, bills.partner, bills.month, max(bills.issued_at) AS last
    FROM temp.bills AS bills
    WHERE bills.apart IS NULL
    GROUP BY bills.connection, bills.partner, bills.month
), withdrawn AS (
    SELECT DISTINCT gone.connection, gone.partner, gone.month
    FROM versions AS gone
    ANTI JOIN temp.bills AS now
        ON now.connection = gone.connection AND now.bill = gone.id
    WHERE gone.side = 'billing' AND gone._end_reason = 'deleted' AND gone.apart IS NULL
)
SELECT
    used.* REPLACE (used.pair_partner AS partner, used.pair_month AS month),
    CASE WHEN new_values.value IS NOT NULL THEN concat('its bill has the new ', new_values.value)
         WHEN used.pair_month > read_until.day + INTERVAL 1 MONTH THEN 'the month is too far ahead'
         WHEN withdrawn.connection IS NOT NULL AND issued.connection IS NULL
            THEN 'the bill is no longer in the list'
         WHEN issued.connection IS NULL THEN 'no bill for the month'
         WHEN max(used.recorded_at) OVER one > issued.last THEN 'recorded after the last bill'
         ELSE 'missing on the bill' END AS cause,
    concat_ws('|', used.pair_partner, used.pair_month, used.currency, cause) AS subject
FROM paired AS used
LEFT JOIN issued ON issued.connection = used.connection AND issued.partner = used.pair_partner
    AND issued.month = used.pair_month
LEFT JOIN withdrawn ON withdrawn.connection = used.connection
    AND withdrawn.partner = used.pair_partner AND withdrawn.month = used.pair_month
LEFT JOIN new_values ON new_values.connection = used.connection AND new_values.key = used.key
LEFT JOIN read_until ON read_until.connection = used.connection
WHERE used.status = 'not billed'
WINDOW one AS (PARTITION BY used.connection, used.key, used.currency)
