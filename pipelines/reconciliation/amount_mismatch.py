"""The same usage with another amount, currency or partner on its bill."""

from pipelines.reconciliation.base import BOTH_SIDES, LINE, USED, Example, Rule, Severity

SQL = f"""
WITH wrong AS (
    SELECT m.*, CASE
        WHEN status = 'amount' AND abs(m.billed_amount - m.used_amount) <= coalesce(unit, 0.01)
        THEN 'amount, by one minor unit' ELSE status END AS cause
    FROM matched m LEFT JOIN units USING (currency)
    WHERE status IN ('amount', 'another currency') OR (
        status = 'another partner'
        AND EXISTS (FROM payers p WHERE (p.connection, p.partner) = (m.connection, m.partner))
        AND EXISTS (
            FROM payers p WHERE (p.connection, p.partner) = (m.connection, m.billed_partner)
        )
    )
)
{BOTH_SIDES}"""


RULE = Rule(
    name="amount_mismatch",
    question="Where does a bill ask for another amount than the usage it is of?",
    sql=SQL,
    means="Usage and bill agree on what was used and not on what it costs, on the currency, or on "
    "who pays. By one minor unit: as a rule one side rounds otherwise.",
    remedy="See both records (`partner-sync explain`), then dispute the bill or accept it.",
    severity=Severity.MEDIUM,
    needs=("key", "usage.id", "usage.amount", "billing.amount"),
    tolerance="line_minor and line_percent of the mapping, whichever is more",
    examples=(
        Example("equal", [USED], [LINE]),
        Example(
            "a cent more",
            [USED],
            [{**LINE, "amount": "5.01"}],
            found=["amount, by one minor unit"],
        ),
        Example("more", [USED], [{**LINE, "amount": "6.00"}], found=["amount"]),
        Example(
            "in another currency",
            [USED],
            [{**LINE, "currency": "USD"}],
            found=["another currency"],
        ),
        Example(
            "of another partner",
            [USED],
            [{**LINE, "partner": "Q"}],
            payers=["P", "Q"],
            found=["another partner"],
        ),
    ),
)
