"""Usage by partner and month: rows, quantity, what they come to, and how much of it is matched.

Here: the side of usage alone; bills are billing_by_partner's.
"""

from pipelines.reports.base import KEYS, LAST, Chart, Column, Report, count, money

USAGE = Report(
    name="usage_by_partner",
    title="Usage by partner and month",
    question="How much did each partner use in each month, and how much of it is on a bill?",
    needs=("reconciliation.summary",),
    rests_on=("usage_without_billing",),
    sql="""
        SELECT connection, partner, partner_name, month, currency, used_rows, used_quantity,
               used_amount, expected_amount, matched_share_rows, matched_share_value, open_breaks,
               not_evaluated
        FROM reconciliation.summary WHERE coalesce(used_rows, 0) > 0
        ORDER BY month DESC, currency, used_amount DESC NULLS LAST, partner
    """,
    columns=KEYS
    | {
        "used_rows": count("usage records"),
        "used_quantity": Column("the sum of their quantities", "DECIMAL(38, 4)"),
        "used_amount": money("the sum of their amounts, as the service sent them"),
        "expected_amount": money("the sum of quantity times price; empty: no price is mapped"),
        "matched_share_rows": Column("the part of the records that is on a bill", "DECIMAL(38, 4)"),
        "matched_share_value": Column("the part of the amount that is on a bill", "DECIMAL(38, 4)"),
        "open_breaks": count("breaks of this partner, month and currency that nobody resolved"),
    }
    | LAST,
    grain=("connection", "month", "currency"),
    chart=Chart("Used in each month", "month", ("used_amount",)),
)
