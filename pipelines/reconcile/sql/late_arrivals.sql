-- question: How long after its day is usage recorded, and which grace_days does that suggest?
-- needs: usage.period usage.recorded
-- remedy: Set grace_days so that 99 of 100 records are there before a month is closed.
WITH days AS (
    SELECT
        used.connection, used.month, count(*) AS rows,
        greatest(0, used.recorded_at::DATE - used.day) AS lag,
        greatest(0, used.recorded_at::DATE - (used.month + INTERVAL 1 MONTH)::DATE + 1) AS after
    FROM reconciliation.used AS used
    WHERE used.day IS NOT NULL AND used.recorded_at IS NOT NULL
    GROUP BY ALL
), ranked AS (
    SELECT
        days.*,
        sum(days.rows) OVER month AS all_rows,
        sum(days.rows) OVER (month ORDER BY days.lag) AS by_lag,
        sum(days.rows) OVER (month ORDER BY days.after) AS by_after
    FROM days
    WINDOW month AS (PARTITION BY days.connection, days.month)
)
SELECT
    ranked.connection, ranked.month, sum(ranked.rows)::BIGINT AS rows,
    coalesce(sum(ranked.rows) FILTER (ranked.after > 0), 0)::BIGINT AS late_rows,
    min(ranked.lag) FILTER (ranked.by_lag * 100 >= ranked.all_rows * 50) AS lag_p50,
    min(ranked.lag) FILTER (ranked.by_lag * 100 >= ranked.all_rows * 95) AS lag_p95,
    min(ranked.lag) FILTER (ranked.by_lag * 100 >= ranked.all_rows * 99) AS lag_p99,
    max(ranked.lag) AS lag_max,
    min(ranked.after) FILTER (ranked.by_after * 100 >= ranked.all_rows * 99) AS suggested_grace_days
FROM ranked
GROUP BY ranked.connection, ranked.month
ORDER BY ALL
