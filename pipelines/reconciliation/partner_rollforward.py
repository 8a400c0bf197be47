"""The unbilled balance of every partner from month to month, footed against the tables of today."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH used_firsts AS (
    SELECT connection, id, min(valid_from) AS first FROM used_versions WHERE valid_to IS NOT NULL
    GROUP BY ALL
), bill_firsts AS (
    SELECT connection, bill, min(valid_from) AS first FROM bill_versions WHERE valid_to IS NOT NULL
    GROUP BY ALL
), posted AS (
    SELECT connection, partner, currency, amount,
           CASE WHEN valid_from > first THEN greatest(month, from_month)
                ELSE greatest(month, coalesce(date_trunc('month', recorded_on)::DATE, month))
           END AS month,
           CASE WHEN valid_from > first THEN 'restated'
                WHEN date_trunc('month', recorded_on) > month THEN 'late' ELSE 'rated' END AS kind
    FROM used_versions LEFT JOIN used_firsts USING (connection, id)
    UNION ALL
    SELECT connection, partner, currency, -amount, greatest(month, to_month), 'restated'
    FROM used_versions WHERE valid_to IS NOT NULL
    UNION ALL
    SELECT connection, partner, currency, amount,
           CASE WHEN valid_from > first THEN greatest(month, from_month) ELSE month END,
           CASE WHEN valid_from > first THEN 'adjustments' ELSE 'billed' END
    FROM bill_versions LEFT JOIN bill_firsts USING (connection, bill)
    UNION ALL
    SELECT connection, partner, currency, -amount, greatest(month, to_month), 'adjustments'
    FROM bill_versions WHERE valid_to IS NOT NULL
), moved AS (
    SELECT connection, partner, currency, month,
           coalesce(sum(amount) FILTER (kind = 'rated'), 0) AS rated,
           coalesce(sum(amount) FILTER (kind = 'late'), 0) AS late,
           coalesce(sum(amount) FILTER (kind = 'restated'), 0) AS restated,
           coalesce(sum(amount) FILTER (kind = 'billed'), 0) AS billed,
           coalesce(sum(amount) FILTER (kind = 'adjustments'), 0) AS adjustments
    FROM posted WHERE month IS NOT NULL AND amount IS NOT NULL GROUP BY ALL
), spanned AS (
    SELECT connection, partner, currency, unnest(generate_series(
        min(month), max(max(month)) OVER (PARTITION BY connection), INTERVAL 1 MONTH
    ))::DATE AS month
    FROM moved GROUP BY connection, partner, currency
), filled AS (
    SELECT s.connection, s.partner, s.currency, s.month, coalesce(rated, 0) AS rated,
           coalesce(late, 0) AS late, coalesce(restated, 0) AS restated,
           coalesce(billed, 0) AS billed, coalesce(adjustments, 0) AS adjustments
    FROM spanned s LEFT JOIN moved m ON m.connection = s.connection AND m.month = s.month
        AND m.partner IS NOT DISTINCT FROM s.partner
        AND m.currency IS NOT DISTINCT FROM s.currency
), closed AS (
    SELECT *, sum(rated + late + restated - billed - adjustments) OVER (
        PARTITION BY connection, partner, currency ORDER BY month
    ) AS closing FROM filled
), direct AS (
    SELECT connection, partner, currency, sum(amount) AS closing_direct FROM (
        SELECT connection, partner, currency, amount FROM used WHERE month IS NOT NULL
        UNION ALL
        SELECT connection, partner, currency, -amount FROM bills WHERE month IS NOT NULL
        UNION ALL
        SELECT connection, partner, currency, amount FROM used_versions
        WHERE missing_since IS NOT NULL AND valid_to IS NULL AND month IS NOT NULL
        UNION ALL
        SELECT connection, partner, currency, -amount FROM bill_versions
        WHERE missing_since IS NOT NULL AND valid_to IS NULL AND month IS NOT NULL
    ) WHERE amount IS NOT NULL GROUP BY ALL
)
SELECT c.connection, c.partner, c.currency, c.month,
       closing - (rated + late + restated - billed - adjustments) AS opening,
       rated, late, restated, billed, adjustments, closing,
       CASE WHEN newest THEN coalesce(closing_direct, 0) END AS closing_direct,
       CASE WHEN newest THEN closing - coalesce(closing_direct, 0) END AS difference
FROM (
    SELECT *, month = max(month) OVER (PARTITION BY connection, partner, currency) AS newest
    FROM closed
) c LEFT JOIN direct d ON d.connection = c.connection
    AND d.partner IS NOT DISTINCT FROM c.partner AND d.currency IS NOT DISTINCT FROM c.currency
ORDER BY c.connection, c.partner, c.currency, c.month
"""
RULE = Rule(
    name="partner_rollforward",
    question="What is used and not yet billed, and how did it come about month by month?",
    sql=SQL,
    means="The movements are made of every version that there ever was; the newest closing is also "
    "added up from the tables of today. The difference has to be 0.",
    remedy="A difference that is not 0 is a defect of partner-sync: please report it.",
    needs=(
        "usage.id",
        "usage.partner",
        "usage.period",
        "usage.amount",
        "billing.id",
        "billing.partner",
        "billing.period",
        "billing.amount",
    ),
    columns={
        "opening": "unbilled at the begin of the month: the closing of the one before",
        "rated": "usage of the month, as it was first read",
        "late": "usage of earlier months that was recorded in this one",
        "restated": "usage that changed or went away in this month, new less old",
        "billed": "bills of the month, as they were first read",
        "adjustments": "bills that changed or went away in this month, new less old",
        "closing": "opening + rated + late + restated - billed - adjustments",
        "closing_direct": "of the newest month: all usage less all bills that there are now",
        "difference": "closing less closing_direct: 0",
    },
)
