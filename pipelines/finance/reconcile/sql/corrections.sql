-- question: What changed in closed months, and to which month is it posted?
-- needs: changed_records
-- remedy: Restore a damaged copy from a backup, then run `partner-sync reconcile`.
-- What was posted stays. The postings of a record add up to what it is worth more than was signed
-- off, and to 0 once its month is reopened: its changes count in that month then.
-- Of a record that cannot be read now, nothing is posted until it can be.
WITH posted AS (
    FROM temp.memory_corrections
    UNION ALL
    (FROM signed_corrections EXCEPT ALL FROM temp.memory_corrections)
), parts AS (
    SELECT
        changes.* EXCLUDE (is_otherwise, is_unread, is_added) RENAME (amount_then AS signed_off), closes.number,
        true AS is_changed, NULL AS posted
    FROM reconciliation.changed_records AS changes
    JOIN reconciliation.closed_months AS closes
        ON closes.month = changes.month AND NOT closes.is_reopened
    WHERE NOT changes.is_otherwise
    UNION ALL BY NAME
    SELECT
        before.month, before.number, before.side, before.connection, before.id, before.partner,
        upper(trim(before.currency)) AS currency, false AS is_changed,
        sum(before.difference) AS posted,
        arg_min_null(before.amount_before, (before.seen_at, before.posted_to)) AS signed_off,
        signed_off AS amount_now
    FROM posted AS before
    GROUP BY ALL
), records AS (
    SELECT
        parts.month, parts.number, parts.side, parts.connection, parts.id, parts.partner,
        parts.currency,
        arg_max_null(parts.signed_off, parts.is_changed) AS signed_off,
        arg_max_null(parts.amount_now, parts.is_changed) AS amount_now,
        sum(parts.posted) AS posted
    FROM parts
    GROUP BY ALL
)
FROM posted
UNION ALL BY NAME
SELECT
    records.* EXCLUDE (signed_off, posted),
    CASE WHEN records.posted IS NULL THEN records.signed_off
         ELSE coalesce(records.signed_off, 0) + records.posted END AS amount_before,
    coalesce(records.amount_now, 0) - coalesce(amount_before, 0) AS difference,
    closes.posted_to,
    -- Not before what a closed month took, although a rollback goes back.
    greatest(getvariable('as_of'), last.seen_at) AS seen_at
FROM records
JOIN reconciliation.closed_months AS closes USING (month, number)
LEFT JOIN (
    SELECT DISTINCT changes.month, changes.side, changes.connection, changes.id, true AS is_unread
    FROM reconciliation.changed_records AS changes
    WHERE changes.is_unread
) AS waiting USING (month, side, connection, id)
LEFT JOIN (
    SELECT posted.connection, max(posted.seen_at) AS seen_at FROM posted GROUP BY posted.connection
) AS last USING (connection)
WHERE difference <> 0 AND (waiting.is_unread IS NULL OR closes.is_reopened)
