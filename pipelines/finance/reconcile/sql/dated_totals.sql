-- kind: TEMP TABLE
-- needs: cut_offs items
-- Both sides by all that identifies what rows are for: as they are now, as they were at the cut-off of
-- their month (`then`), and those of now whose record was not known then (`late`). Where a month has no
-- cut-off, then is now.
WITH ended AS (
    SELECT
        versions.side, versions.connection, versions._key, versions._valid_from, versions._valid_to
    FROM versions
    WHERE versions._valid_to IS NOT NULL
), lines AS (
    SELECT billed.*, true AS is_now FROM temp.billed AS billed
    UNION ALL BY NAME
    SELECT billed.*, false AS is_now FROM billed_history AS billed
    WHERE billed._valid_to IS NOT NULL
), rows AS (
    SELECT
        'usage' AS side, used.connection, used.partner, used.month, used.currency, used.plan,
        used.metric, used.unit, used.region, used.organization, 'usage' AS kind, used.quantity,
        used.amount, used._key, used._valid_from, used._valid_to, used._valid_to IS NULL AS is_now
    FROM used_history AS used
    UNION ALL BY NAME
    SELECT
        'billing' AS side, lines.connection, lines.partner, lines.month, lines.currency,
        coalesce(lines.plan, items.of.plan) AS plan,
        coalesce(lines.metric, items.of.metric) AS metric,
        coalesce(lines.unit, items.of.unit) AS unit,
        coalesce(lines.region, items.of.region) AS region,
        coalesce(lines.organization, items.of.organization) AS organization,
        CASE WHEN lines.apart IS NOT NULL THEN lines.apart
             WHEN lines.key IS NULL THEN 'fee' ELSE 'usage' END AS kind,
        lines.quantity, lines.amount, lines._key, lines._valid_from, lines._valid_to, lines.is_now
    FROM lines
    LEFT JOIN items ON items.connection = lines.connection AND items.key = lines.key
    WHERE lines.apart IS NULL OR lines.apart = 'credit note'
), judged AS (
    SELECT
        rows.*,
        if(cut_offs.cut_off IS NULL OR cut_offs.history_from IS NOT NULL, rows.is_now,
            rows._valid_from <= cut_offs.cut_off
                AND (rows.is_now OR rows._valid_to > cut_offs.cut_off)) AS is_then,
        rows.is_now AND NOT is_then AND ended._key IS NULL AS is_late
    FROM rows
    LEFT JOIN cut_offs USING (connection, side, month)
    -- The version of its record that was valid at the cut-off, in whatever month.
    LEFT JOIN ended
        ON ended.connection = rows.connection AND ended.side = rows.side
        AND ended._key = rows._key AND rows.is_now
        AND ended._valid_from <= cut_offs.cut_off AND ended._valid_to > cut_offs.cut_off
)
SELECT
    judged.side, judged.connection, judged.partner, judged.month, judged.currency, judged.plan,
    judged.metric, judged.unit, judged.region, judged.organization, judged.kind,
    count(*) FILTER (judged.is_now) AS rows_now,
    count(judged.quantity) FILTER (judged.is_now AND judged.amount IS NOT NULL) AS counted_now,
    sum(judged.quantity) FILTER (judged.is_now) AS quantity_now,
    sum(judged.amount) FILTER (judged.is_now) AS amount_now,
    count(*) FILTER (judged.is_then) AS rows_then,
    count(judged.quantity) FILTER (judged.is_then AND judged.amount IS NOT NULL) AS counted_then,
    sum(judged.quantity) FILTER (judged.is_then) AS quantity_then,
    sum(judged.amount) FILTER (judged.is_then) AS amount_then,
    sum(judged.amount) FILTER (judged.is_late) AS amount_late
FROM judged
WHERE judged.is_now OR judged.is_then
GROUP BY ALL
