-- question: Does every bill line that refers to usage have its usage record?
-- label: Billed without usage
-- needs: exceptions billing.partner
-- rests on: usage
-- remedy: Before you pay, ask which usage the bill is for.
-- A credit note of such a line belongs to the partner's first bill that has it. If it takes all of that back,
-- only the other bills are breaks.
WITH owned AS (
    SELECT
        billed.*, concat('billed without usage', ', with the new ' || billed.unseen) AS cause,
        if(billed.apart IS NULL, billed.bill, min(billed.bill) FILTER (billed.apart IS NULL)
            OVER one) AS subject
    FROM paired AS billed
    WHERE billed.status = 'not used'
    WINDOW one AS (PARTITION BY billed.connection, billed.key, billed.currency, billed.partner)
)
SELECT owned.*
FROM owned
WHERE owned.subject IS NOT NULL
WINDOW one AS (PARTITION BY owned.connection, owned.key, owned.currency, owned.subject)
QUALIFY sum(owned.amount) OVER one IS DISTINCT FROM 0
    OR NOT bool_or(owned.apart IS NOT NULL) OVER one
