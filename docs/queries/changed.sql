-- What changed last night? Rows that are new, changed or restated (a number of theirs is another
-- one), and rows that were missing for the first time.
WITH nights AS (
    SELECT connection AS _connection, max(ended_at) AS night
    FROM meta.folds
    WHERE stream = 'billing'
    GROUP BY connection
)
SELECT
    open.billing_id,
    CASE
        WHEN open.missing_since = nights.night THEN 'missing'
        ELSE coalesce(ended.why, 'new')
    END AS what,
    open.currency,
    ended.total AS total_before,
    open.total AS total_now,
    nights.night
FROM history.billing AS open
JOIN nights USING (_connection)
LEFT JOIN history.billing AS ended
    ON ended._connection = open._connection
    AND ended.billing_id = open.billing_id
    AND ended.valid_to = open.valid_from
WHERE open.valid_to IS NULL
    AND (open.valid_from = nights.night OR open.missing_since = nights.night)
ORDER BY what, open.billing_id;
