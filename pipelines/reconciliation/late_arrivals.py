"""How long after its day usage is recorded, and the grace that this suggests."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH days AS (
    SELECT connection, month, day, recorded_on, count(*) AS rows
    FROM used WHERE day IS NOT NULL AND recorded_on IS NOT NULL GROUP BY ALL
), lagged AS (
    SELECT connection, month, rows, greatest(0, recorded_on - day) AS lag,
           greatest(0, recorded_on - (month + INTERVAL 1 MONTH)::DATE + 1) AS after
    FROM days
), ranked AS (
    SELECT *, sum(rows) OVER (PARTITION BY connection, month) AS every,
           sum(rows) OVER (PARTITION BY connection, month ORDER BY lag) AS by_lag,
           sum(rows) OVER (PARTITION BY connection, month ORDER BY after) AS by_after
    FROM lagged
)
SELECT connection, month, sum(rows)::BIGINT AS rows,
       coalesce(sum(rows) FILTER (after > 0), 0)::BIGINT AS late_rows,
       min(lag) FILTER (by_lag * 100 >= every * 50) AS lag_p50,
       min(lag) FILTER (by_lag * 100 >= every * 95) AS lag_p95,
       min(lag) FILTER (by_lag * 100 >= every * 99) AS lag_p99, max(lag) AS lag_max,
       min(after) FILTER (by_after * 100 >= every * 99) AS suggested_grace_days
FROM ranked GROUP BY ALL ORDER BY ALL
"""

RULE = Rule(
    name="late_arrivals",
    question="How late is usage recorded?",
    sql=SQL,
    means="Usage that is recorded after its month was billed is on no bill of that month.",
    remedy="Set grace_days of the mapping so that 99 of 100 records are there before a close.",
    needs=("usage.period", "usage.recorded"),
    columns={
        "rows": "records of usage of the month",
        "late_rows": "of these, recorded when the month was over",
        "lag_p50": "days from use to record: half of the records took no longer",
        "lag_p95": "95 of 100 records took no longer",
        "lag_p99": "99 of 100 records took no longer",
        "lag_max": "the longest",
        "suggested_grace_days": "days after the month at which 99 of 100 records were there",
    },
)
