"""Billing by partner and month: lines, amount, and how far it is from what was used.

Here: the side of bills; the usage itself is usage_by_partner's.
"""

from pipelines.reports.base import KEYS, LAST, Chart, Column, Report, count, money

BILLING = Report(
    name="billing_by_partner",
    title="Billing by partner and month",
    question="What was each partner billed for each month, and how far is it from what was used?",
    needs=("reconciliation.summary",),
    rests_on=("billing_without_usage",),
    sql="""
        SELECT connection, partner, partner_name, month, currency, billed_rows, billed_amount,
               used_amount, variance, variance_percent, open_breaks, verdict, not_evaluated
        FROM reconciliation.summary
        ORDER BY month DESC, currency, abs(variance) DESC NULLS LAST, billed_amount DESC NULLS LAST,
                 partner
    """,
    columns=KEYS
    | {
        "billed_rows": count("lines of bills; a bill without lines is one"),
        "billed_amount": money("the sum of their amounts"),
        "used_amount": money("the sum of the amounts of usage of the same month"),
        "variance": money("billed less used"),
        "variance_percent": Column("the same in percent of what was used", "DECIMAL(38, 4)"),
        "open_breaks": count("breaks of this partner, month and currency that nobody resolved"),
        "verdict": Column("balanced, within tolerance, out of balance, tentative or not evaluated"),
    }
    | LAST,
    grain=("connection", "month", "currency", "verdict"),
    chart=Chart("Used and billed for each month", "month", ("used_amount", "billed_amount")),
)
