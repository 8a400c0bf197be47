-- Usage that was recorded after its month had ended.
SELECT
    coalesce(sum(late.rows), 0)::BIGINT AS rows,
    coalesce(sum(late.late_rows), 0)::BIGINT AS late_rows,
    max(late.lag_max) AS lag_max,
    max(late.suggested_grace_days) AS suggested_grace_days,
    any_value(basis.grace_days) AS grace_days
FROM reconciliation.late_arrivals AS late
CROSS JOIN reconciliation.basis AS basis
