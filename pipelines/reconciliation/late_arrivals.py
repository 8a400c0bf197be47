"""How long after its day usage is recorded, and the grace that this suggests."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH recorded AS (
    SELECT connection, month, day, (recorded_at AT TIME ZONE zone)::DATE AS recorded
    FROM used CROSS JOIN terms WHERE day IS NOT NULL AND recorded_at IS NOT NULL
), lagged AS (
    SELECT connection, month, greatest(0, date_diff('day', day, recorded)) AS lag,
           greatest(
               0, date_diff('day', (month + INTERVAL 1 MONTH)::DATE, recorded) + 1
           ) AS after
    FROM recorded
)
SELECT connection, month, count(*) AS rows, count(*) FILTER (after > 0) AS late_rows,
       quantile_disc(lag, 0.5) AS lag_p50, quantile_disc(lag, 0.95) AS lag_p95,
       quantile_disc(lag, 0.99) AS lag_p99, max(lag) AS lag_max,
       quantile_disc(after, 0.99) AS suggested_grace_days
FROM lagged GROUP BY ALL ORDER BY ALL
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
