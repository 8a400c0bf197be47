-- kind: VIEW
-- From which amount on a break is material, by currency: as mapping.toml says. Without it, a proposal:
-- a thousandth of what is billed in the middle one of the last three complete months with bills,
-- rounded to 1, 2 or 5 x 10^k. A currency without such a month has none.
WITH months AS (
    SELECT facts.currency, facts.month, sum(facts.billed_amount) AS billed
    FROM reconciliation.month_facts AS facts
    CROSS JOIN reconciliation.basis AS basis
    WHERE facts.currency IS NOT NULL AND (facts.month + INTERVAL 1 MONTH)::DATE + basis.grace_days
        <= (basis.as_of AT TIME ZONE basis.time_zone)::DATE
    GROUP BY facts.currency, facts.month
    HAVING billed > 0
    QUALIFY row_number() OVER (PARTITION BY facts.currency ORDER BY facts.month DESC) <= 3
), medians AS (
    SELECT
        months.currency,
        TRY_CAST(quantile_disc(months.billed, 0.5) AS DECIMAL(38, 18)) AS median,
        count(*) AS months
    FROM months
    GROUP BY months.currency
), steps AS (
    SELECT
        concat(digits.digit, 'e', powers.power)::DECIMAL(28, 4) AS step,
        concat(digits.digit, 'e', powers.power + 3)::DECIMAL(38, 18) AS thousandfold
    FROM (SELECT unnest([1, 2, 5]) AS digit) AS digits
    CROSS JOIN (SELECT unnest(range(-4, 16)) AS power) AS powers
)
SELECT
    accepted.currency, accepted.amount, 'mapping' AS source, NULL AS median, NULL::BIGINT AS months
FROM reconciliation.accepted_materiality AS accepted
UNION ALL
SELECT
    medians.currency,
    arg_min(steps.step, (abs(steps.thousandfold - medians.median), steps.step)) AS amount,
    'proposal' AS source, medians.median, medians.months
FROM medians
CROSS JOIN steps
ANTI JOIN reconciliation.accepted_materiality AS accepted USING (currency)
WHERE medians.median IS NOT NULL
GROUP BY medians.currency, medians.median, medians.months
