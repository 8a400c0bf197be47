-- kind: VIEW
-- question: Which months are closed, who closed them, and which records changed afterwards?
-- needs: changed_records
-- remedy: Restore a damaged copy from a backup, then run `partner-sync reconcile`.
WITH sums AS (
    SELECT
        changes.month, changes.side, changes.currency,
        if(changes.is_added, changes.connection, NULL) AS added, count(*) AS records,
        count(*) FILTER (changes.is_unread) AS unread,
        -- What cannot be read now is no difference.
        sum(coalesce(changes.amount_now, 0) - coalesce(changes.amount_then, 0))
            FILTER (NOT changes.is_unread) AS difference
    FROM reconciliation.changed_records AS changes
    WHERE NOT changes.is_otherwise
    GROUP BY changes.month, changes.side, changes.currency, added
), months AS (
    SELECT
        sums.month, sum(sums.records)::BIGINT AS records, sum(sums.unread)::BIGINT AS unread,
        string_agg(
            concat_ws(
                ' ', sums.side, sums.currency,
                concat(
                    if(sums.difference > 0, '+', ''),
                    regexp_replace(sums.difference::VARCHAR, '(\.\d\d\d*?)0+$', '\1')
                ),
                '(connection ' || sums.added || ', which was added after the close)'
            ), ', '
            ORDER BY sums.side DESC, sums.currency, sums.added NULLS FIRST
        ) FILTER (sums.difference <> 0) AS difference
    FROM sums
    GROUP BY sums.month
)
SELECT
    closes.month, closes.number,
    CASE WHEN closes.is_reopened THEN 'reopened' WHEN months.records > 0 THEN 'outdated'
         ELSE 'closed' END AS state,
    closes.preparer, closes.reviewer, closes.closed_at, closes.version,
    coalesce(months.records, 0) AS changed_records, months.difference AS net_difference,
    coalesce(months.unread, 0) AS unread_records,
    (SELECT count(*) FROM reconciliation.changed_records AS changes
        WHERE changes.is_otherwise AND changes.month = closes.month AND NOT closes.is_reopened
    ) AS read_otherwise,
    closes.manifest_sha256, closes.approval, closes.approved_at, closes.note, closes.accept_open,
    closes.reopened_at, closes.reopened_by, closes.reopened_reason, closes.connections,
    closes.has_mapping
FROM reconciliation.closed_months AS closes
LEFT JOIN months ON months.month = closes.month AND NOT closes.is_reopened
ORDER BY closes.month, closes.number
