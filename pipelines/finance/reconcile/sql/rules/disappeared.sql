-- question: Does the service still return every record that was ever read?
-- needs: usage.id billing.id
-- remedy: Ask why the record was withdrawn. If that is right, resolve the break.
-- A credit note counts, too: without it, more is to be paid. A record without an identifier is known by
-- its key.
SELECT
    gone.*, gone.side || '|' || coalesce(gone.id, gone._key) AS subject,
    gone.side || ' that is no longer in the list' AS cause
FROM versions AS gone
ANTI JOIN versions AS now ON now.connection = gone.connection AND now.side = gone.side
    AND coalesce(now.id, now._key) = coalesce(gone.id, gone._key) AND now._valid_to IS NULL
WHERE gone._end_reason = 'deleted' AND coalesce(gone.apart, 'credit note') = 'credit note'
QUALIFY gone._valid_to = max(gone._valid_to) OVER (
    PARTITION BY gone.connection, gone.side, coalesce(gone.id, gone._key)
)
