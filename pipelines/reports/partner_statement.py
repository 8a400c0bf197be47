"""The statement of a partner: opening, used, billed, closing, month by month.

Roll-forward and summary put side by side; both are reconciliation's.
"""

from pipelines.reports.base import KEYS, LAST, Chart, Column, Report, count, money

STATEMENT = Report(
    name="partner_statement",
    title="Partner statement",
    question="What did each partner use, what was it billed, and what is still to be billed?",
    needs=("reconciliation.partner_rollforward", "reconciliation.summary"),
    rests_on=("partner_rollforward",),
    sql="""
        SELECT coalesce(s.connection, r.connection) AS connection,
               coalesce(s.partner, r.partner) AS partner, s.partner_name,
               coalesce(s.month, r.month) AS month, coalesce(s.currency, r.currency) AS currency,
               r.opening, r.rated + r.late + r.restated AS used, r.billed, r.adjustments,
               r.closing, r.difference, coalesce(s.open_breaks, 0) AS open_breaks, s.verdict,
               s.not_evaluated
        FROM reconciliation.summary AS s FULL JOIN reconciliation.partner_rollforward AS r
          ON s.connection = r.connection AND s.partner IS NOT DISTINCT FROM r.partner
          AND s.month IS NOT DISTINCT FROM r.month AND s.currency IS NOT DISTINCT FROM r.currency
        ORDER BY open_breaks DESC, month DESC, partner_name, partner, currency
    """,
    columns=KEYS
    | {
        "opening": money("used and not billed when the month began: the closing of the one before"),
        "used": money("used in the month, late and restated records included"),
        "billed": money("billed for the month"),
        "adjustments": money("credits and other bills that are for no usage"),
        "closing": money("used and not billed when the month ended"),
        "difference": money(
            "closing less the same reckoned from the tables, in the newest month: must be 0"
        ),
        "open_breaks": count("breaks of this partner, month and currency that nobody resolved"),
        "verdict": Column("balanced, within tolerance, out of balance, tentative or not evaluated"),
    }
    | LAST,
    grain=("connection", "month", "currency"),
    chart=Chart("Used and not billed at the end of each month", "month", ("closing",)),
)
