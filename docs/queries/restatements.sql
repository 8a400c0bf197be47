-- Which bills were restated, when, and what did each version say? The newest first.
SELECT
    after.valid_from AS restated_at,
    after.billing_id,
    after.currency,
    before.total AS total_before,
    after.total AS total_after,
    after.total - before.total AS difference,
    before.revision AS revision_before,
    after.revision AS revision_after
FROM history.billing AS before
JOIN history.billing AS after
    ON after._connection = before._connection
    AND after.billing_id = before.billing_id
    AND after.valid_from = before.valid_to
WHERE before.why = 'restated'
ORDER BY restated_at DESC, after.billing_id;
