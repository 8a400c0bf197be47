-- By plan, metric, region and unit, the first changes that the page lists, in the order of these. `change`
-- is the place of a change in that list, from 0; `items` counts the rows that it has here.
-- The twenty largest of each have a row. All others are one row, so that all rows add up to the change:
-- `others` of them have a change. 20,000 rows take about half a megabyte of the page.
WITH listed AS (
    SELECT changes.*
    FROM listed_changes AS changes
    WHERE changes.place < 20000
), matched AS (
    SELECT listed.place, items.*
    FROM listed
    JOIN reconciliation.flux_items AS items
        ON items.month = listed.month AND items.side = listed.side
        AND items.connection = listed.connection
        AND items.partner IS NOT DISTINCT FROM listed.partner
        AND items.currency IS NOT DISTINCT FROM listed.currency
    WHERE listed.name IS NOT NULL
    UNION ALL
    SELECT listed.place, items.*
    FROM listed
    JOIN reconciliation.flux_items AS items
        ON items.month = listed.month AND items.side = listed.side
        AND items.currency IS NOT DISTINCT FROM listed.currency
    WHERE listed.name IS NULL
), summed AS (
    SELECT
        matched.place, matched.kind, matched.plan, matched.metric, matched.unit, matched.region,
        if(count(matched.quantity_before) = count(*), sum(matched.quantity_before), NULL)
            AS quantity_before,
        if(count(matched.quantity) = count(*), sum(matched.quantity), NULL) AS quantity,
        sum(matched.amount_before) AS amount_before, sum(matched.amount) AS amount,
        sum(matched.difference) AS difference,
        if(count(matched.late) = count(*), sum(matched.late), NULL) AS late,
        if(count(matched.restated) = count(*), sum(matched.restated), NULL) AS restated,
        sum(matched.credits) AS credits,
        sum(matched.fees) AS fees, sum(matched.new) AS new, sum(matched.lost) AS lost,
        sum(matched.volume) AS volume, sum(matched.price) AS price,
        sum(matched.unexplained) AS unexplained
    FROM matched
    GROUP BY ALL
), sized AS (
    SELECT
        summed.*,
        greatest(
            abs(summed.difference)::DOUBLE, abs(summed.late), abs(summed.restated),
            abs(summed.credits), abs(summed.fees), abs(summed.new), abs(summed.lost),
            abs(summed.volume), abs(summed.price), abs(summed.unexplained)
        ) AS size
    FROM summed
), ranked AS (
    SELECT
        sized.*,
        row_number() OVER (
            PARTITION BY sized.place
            ORDER BY sized.size DESC, sized.kind, sized.plan, sized.metric, sized.region, sized.unit
        ) AS rank,
        if(sized.size > 0 AND rank <= 20, rank, 21) AS line
    FROM sized
)
SELECT
    items.place AS change, count(*) OVER (PARTITION BY items.place) AS items,
    if(items.line = 21, count(*) FILTER (items.size > 0), NULL) AS others,
    CASE WHEN others = 0 THEN count(*) || ' without a change'
         WHEN others > 0 THEN count(*) || if(count(*) = 1, ' other', ' others')
         WHEN any_value(items.kind) = 'fee' THEN 'charge without usage'
         WHEN any_value(items.kind) = 'credit note' THEN 'credit note' END AS kind,
    if(items.line = 21, NULL, any_value(items.plan)) AS plan,
    if(items.line = 21, NULL, any_value(items.metric)) AS metric,
    if(items.line = 21, NULL, any_value(items.region)) AS region,
    if(items.line = 21, NULL, any_value(items.unit)) AS unit,
    if(items.line = 21, NULL, exact(any_value(items.quantity_before))) AS quantity_before,
    if(items.line = 21, NULL, exact(any_value(items.quantity))) AS quantity,
    exact(sum(items.amount_before)) AS before, exact(sum(items.amount)) AS now,
    exact(sum(items.difference)) AS difference,
    if(count(items.late) < count(*), 'not known', nullif(exact(sum(items.late)), '0')) AS late,
    if(count(items.restated) < count(*), 'not known', nullif(exact(sum(items.restated)), '0'))
        AS restated,
    nullif(exact(sum(items.credits)), '0') AS credits, nullif(exact(sum(items.fees)), '0') AS fees,
    nullif(exact(sum(items.new)), '0') AS new, nullif(exact(sum(items.lost)), '0') AS lost,
    nullif(exact(sum(items.volume)), '0') AS volume, nullif(exact(sum(items.price)), '0') AS price,
    nullif(exact(sum(items.unexplained)), '0') AS unexplained
FROM ranked AS items
GROUP BY items.place, items.line
ORDER BY items.place, items.line
LIMIT 20000
