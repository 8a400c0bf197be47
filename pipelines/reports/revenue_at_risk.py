"""Revenue at risk: what the open breaks come to, by currency, rule and age.

What paging made (artefacts) is counted apart and adds to no amount: nobody disputes a bill over it.
"""

from pipelines.reports.base import KEYS, LAST, Chart, Column, Report, count, money

AT_RISK = Report(
    name="revenue_at_risk",
    title="Revenue at risk",
    question="How much money do the open breaks stand for, by currency, rule and age?",
    needs=("reconciliation.breaks",),
    sql="""
        SELECT connection, currency, rule, severity, bucket,
               count(*) FILTER (NOT artefact) AS breaks, count(*) FILTER (artefact) AS artefacts,
               coalesce(sum(greatest(abs(used_amount), abs(billed_amount)))
                        FILTER (NOT artefact), 0) AS amount,
               coalesce(sum(-difference) FILTER (NOT artefact AND difference < 0), 0) AS unbilled,
               coalesce(sum(difference) FILTER (NOT artefact AND difference > 0), 0) AS overbilled,
               coalesce(sum(difference) FILTER (NOT artefact), 0) AS difference,
               max(age_days)::BIGINT AS oldest_days, NULL::VARCHAR AS not_evaluated
        FROM reconciliation.breaks WHERE state <> 'RESOLVED' GROUP BY ALL
        ORDER BY currency, amount DESC, rule, bucket, connection
    """,
    columns={
        "connection": KEYS["connection"],
        "currency": KEYS["currency"],
        "rule": Column("the rule that found them"),
        "severity": Column("low, medium or high; it rises with age"),
        "bucket": Column("days since they were first seen: 0-1, 2-3, 4-7, 8-30 or >30"),
        "breaks": count("open breaks, paging artefacts apart"),
        "artefacts": count("open breaks that only reading page by page made; in no amount here"),
        "amount": money("the sum of the amounts they are about, the larger side of each"),
        "unbilled": money("used and not billed: what the open breaks may cost"),
        "overbilled": money("billed and not used: what may have to be paid back"),
        "difference": money("billed less used, of all of them"),
        "oldest_days": count("days since the oldest was first seen"),
    }
    | LAST,
    grain=("connection", "currency", "rule", "severity", "bucket"),
    chart=Chart("Open breaks: unbilled and overbilled", "rule", ("unbilled", "overbilled")),
)
