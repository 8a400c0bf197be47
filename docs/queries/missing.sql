-- What is missing, and since when? A row that one complete reading lacks is still in current, with
-- missing_since; when a second one, of another day, lacks it too, it is gone and only in history.
SELECT billing_id, currency, total, missing_since, 'absent once, still in current' AS state
FROM current.billing
WHERE missing_since IS NOT NULL
UNION ALL
SELECT gone.billing_id, gone.currency, gone.total, gone.valid_to, 'gone'
FROM history.billing AS gone
ANTI JOIN current.billing AS here
    ON here._connection = gone._connection AND here.billing_id = gone.billing_id
WHERE gone.why = 'missing'
ORDER BY missing_since DESC, billing_id;
