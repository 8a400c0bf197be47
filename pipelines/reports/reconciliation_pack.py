"""The reconciliation pack: completeness first, then closes, totals, rules and the top breaks.

What finance signs, in the order in which it is read; every figure is reconciliation's own.
"""

from pipelines.reports.base import KEYS, LAST, Chart, Column, Report, count, money

PACK = Report(
    name="reconciliation_pack",
    title="Reconciliation pack",
    question="Is everything here, does usage agree with billing, and what has to be looked at?",
    needs=(
        "reconciliation.completeness",
        "reconciliation.summary",
        "reconciliation.rules",
        "reconciliation.breaks",
        "reconciliation.closes",
    ),
    rests_on=("amount_mismatch", "quantity_mismatch", "usage_without_billing"),
    sql="""
        WITH complete AS (
            FROM reconciliation.completeness QUALIFY row_number() OVER (
                PARTITION BY connection, stream ORDER BY ended_at DESC NULLS LAST) = 1
        ), totals AS (
            SELECT connection, month, currency, count(*) AS rows, sum(used_amount) AS used_amount,
                   sum(billed_amount) AS billed_amount, sum(variance) AS difference,
                   count(*) FILTER (verdict = 'balanced') AS balanced,
                   count(*) FILTER (verdict = 'within tolerance') AS within,
                   count(*) FILTER (verdict = 'out of balance') AS apart,
                   count(*) FILTER (verdict = 'tentative') AS tentative,
                   count(*) FILTER (verdict = 'not evaluated') AS unknown,
                   string_agg(DISTINCT not_evaluated, '; ' ORDER BY not_evaluated) AS unsaid
            FROM reconciliation.summary GROUP BY ALL
        ), open AS (
            FROM reconciliation.breaks WHERE state <> 'RESOLVED' AND NOT artefact
        ), top AS (
            FROM open QUALIFY row_number() OVER (PARTITION BY connection, currency ORDER BY
                list_position(['high', 'medium', 'low'], severity), abs(difference) DESC NULLS LAST,
                break_id) <= 10
        ), lines AS (
            SELECT 1 AS part, 'completeness' AS section, connection, stream AS what,
                   NULL::DATE AS month, NULL::VARCHAR AS currency, rows,
                   concat_ws('. ', sentence, doubt) AS says, NULL::VARCHAR AS not_evaluated
            FROM complete
            UNION ALL BY NAME
            SELECT 2 AS part, 'close' AS section, 'close ' || number AS what, month,
                   state AS verdict, said AS says
            FROM reconciliation.closes
            UNION ALL BY NAME
            SELECT 3 AS part, 'total' AS section, connection, currency AS what, month, currency,
                   rows, used_amount, billed_amount, difference,
                   CASE WHEN apart > 0 THEN 'out of balance' WHEN unknown > 0 THEN 'not evaluated'
                        WHEN tentative > 0 THEN 'tentative' WHEN within > 0 THEN 'within tolerance'
                        ELSE 'balanced' END AS verdict,
                   concat_ws(', ', CASE WHEN balanced > 0 THEN balanced || ' balanced' END,
                       CASE WHEN within > 0 THEN within || ' within tolerance' END,
                       CASE WHEN apart > 0 THEN apart || ' out of balance' END,
                       CASE WHEN tentative > 0 THEN tentative || ' tentative' END,
                       CASE WHEN unknown > 0 THEN unknown || ' not evaluated' END) AS says,
                   unsaid AS not_evaluated
            FROM totals
            UNION ALL BY NAME
            SELECT 4 AS part, 'rule' AS section, rule AS what, breaks AS rows, severity AS verdict,
                   means AS says, CASE WHEN NOT evaluated THEN not_evaluated END AS not_evaluated
            FROM reconciliation.rules
            UNION ALL BY NAME
            SELECT 5 AS part, 'break' AS section, connection, rule AS what, month, currency, rows,
                   used_amount, billed_amount, difference, severity AS verdict, break_id,
                   concat_ws(': ', coalesce(partner_name, partner, subject), cause) AS says
            FROM top
        )
        SELECT row_number() OVER (ORDER BY part, connection, CASE WHEN part < 5 THEN month END DESC,
                   currency, list_position(['high', 'medium', 'low'], verdict),
                   abs(difference) DESC, what, break_id) AS line,
               section, what, month, currency, verdict, difference, says, break_id,
               used_amount, billed_amount, rows::BIGINT AS rows, connection, not_evaluated
        FROM lines ORDER BY line
    """,
    columns={
        "line": count("the place in the pack: completeness first"),
        "section": Column("completeness, close, total, rule or break"),
        "what": Column("the list, the close, the currency or the rule"),
        "month": KEYS["month"],
        "currency": KEYS["currency"],
        "verdict": Column("of a total, the state of a close, the severity of a rule or break"),
        "difference": money("billed less used"),
        "says": Column("in words: the proof, the verdicts of the partners, what a break is"),
        "break_id": Column("the break; partner-sync explain walks it back to the archive"),
        "used_amount": money("what was used"),
        "billed_amount": money("what was billed"),
        "rows": count("rows read, partners with their month, breaks found, or records of a break"),
        "connection": KEYS["connection"],
    }
    | LAST,
    grain=("section", "month", "currency", "verdict"),
    chart=Chart("Billed less used, by month", "month", ("difference",), only="section = 'total'"),
)
