-- question: How many days after its use is usage recorded, and which grace_days cover that?
-- needs: usage.period usage.recorded
-- may lack: any role
-- remedy: Set grace_days so that 99 % of the records arrive before a month is closed.
-- Where a connection has only first days, its periods are months: nobody knows the day of a use.
WITH lags AS (
    SELECT
        used.connection, used.month, used.day,
        greatest(0, used.recorded_on - used.day)::INTEGER AS lag,
        greatest(0, used.recorded_on - (used.month + INTERVAL 1 MONTH)::DATE + 1)::INTEGER
            AS after
    FROM temp.used AS used
    WHERE used.day IS NOT NULL AND used.recorded_on IS NOT NULL
), months AS (
    SELECT
        lags.connection, lags.month, count(*) AS rows,
        count(*) FILTER (lags.after > 0) AS late_rows,
        quantile_disc(lags.lag, 0.5)::BIGINT AS lag_p50,
        quantile_disc(lags.lag, 0.95)::BIGINT AS lag_p95,
        quantile_disc(lags.lag, 0.99)::BIGINT AS lag_p99,
        max(lags.lag)::BIGINT AS lag_max,
        quantile_disc(lags.after, 0.99)::BIGINT AS suggested_grace_days,
        bool_or(bool_or(day(lags.day) > 1)) OVER (PARTITION BY lags.connection) AS has_days
    FROM lags
    GROUP BY lags.connection, lags.month
)
SELECT
    months.* EXCLUDE (has_days) REPLACE (
        if(months.has_days, months.lag_p50, NULL) AS lag_p50,
        if(months.has_days, months.lag_p95, NULL) AS lag_p95,
        if(months.has_days, months.lag_p99, NULL) AS lag_p99,
        if(months.has_days, months.lag_max, NULL) AS lag_max
    )
FROM months
ORDER BY ALL
