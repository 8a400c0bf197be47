"""Months in which a partner has nothing, between months in which it has something."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH active AS (
    SELECT connection, 'usage' AS side, partner, month FROM used_groups
    UNION
    SELECT DISTINCT connection, 'billing', partner, month FROM bills
), spine AS (
    SELECT connection, side, partner, unnest(generate_series(
        min(month), max(month), INTERVAL 1 MONTH
    ))::DATE AS month
    FROM active WHERE partner IS NOT NULL AND month IS NOT NULL GROUP BY connection, side, partner
)
SELECT connection, side, partner, month FROM spine
ANTI JOIN active USING (connection, side, partner, month) ORDER BY ALL
"""

RULE = Rule(
    name="period_gaps",
    question="Which months have no usage, or no bill, between months that have some?",
    sql=SQL,
    means="A hole in the calendar of a partner: it used nothing, or something was not recorded.",
    remedy="Ask the service about a hole that the partner's business does not explain.",
    needs=("usage.partner", "usage.period"),
)
