-- question: What was used and billed, by partner, month and all that identifies what it is for?
-- needs: items
-- remedy: Map plan, metric, unit, region and organization, where the records have them.
-- A row of one side has NULL for the other. All rows of a partner's month add up to `month_facts`.
WITH rows AS (
    SELECT
        used.connection, used.partner, used.month, used.currency, used.plan, used.metric, used.unit,
        used.region, used.organization, 'usage' AS kind, true AS is_used,
        used.quantity AS used_quantity, used.amount AS used_amount
    FROM temp.used AS used
    UNION ALL BY NAME
    SELECT
        billed.connection, billed.partner, billed.month, billed.currency,
        coalesce(billed.plan, items.of.plan) AS plan,
        coalesce(billed.metric, items.of.metric) AS metric,
        coalesce(billed.unit, items.of.unit) AS unit,
        coalesce(billed.region, items.of.region) AS region,
        coalesce(billed.organization, items.of.organization) AS organization,
        CASE WHEN billed.apart IS NOT NULL THEN billed.apart
             WHEN billed.key IS NULL THEN 'fee' ELSE 'usage' END AS kind,
        true AS is_billed, billed.quantity AS billed_quantity, billed.amount AS billed_amount
    FROM temp.billed AS billed
    LEFT JOIN items ON items.connection = billed.connection AND items.key = billed.key
    WHERE billed.apart IS NULL OR billed.apart = 'credit note'
)
SELECT
    rows.connection, rows.partner, rows.month, rows.currency, rows.plan, rows.metric, rows.unit,
    rows.region, rows.organization, rows.kind,
    count(rows.is_used) AS used_rows, sum(rows.used_quantity) AS used_quantity,
    sum(rows.used_amount) AS used_amount,
    count(rows.is_billed) AS billed_rows, sum(rows.billed_quantity) AS billed_quantity,
    sum(rows.billed_amount) AS billed_amount
FROM rows
GROUP BY ALL
