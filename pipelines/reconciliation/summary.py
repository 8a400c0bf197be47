"""Used and billed of every partner, month and currency, and the verdict."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH usage AS (
    SELECT connection, month, partner, currency, rows AS used_rows,
           if(unkeyed_usage IS NULL, quantity, NULL) AS used_quantity,
           if(unkeyed_usage IS NULL, expected, NULL) AS expected_amount,
           if(unkeyed_usage IS NULL, amount, NULL) AS used_amount
    FROM used_groups CROSS JOIN terms
), billing AS (
    SELECT connection, month, partner, currency,
           sum(amount) FILTER (unkeyed_billing IS NULL) AS billed_amount
    FROM bills CROSS JOIN terms GROUP BY ALL
), lines AS (
    SELECT connection, month, partner, currency, count(*) AS billed_rows,
           sum(amount) FILTER (key IS NULL) AS unreferenced
    FROM billed GROUP BY ALL
), wrong AS (
    SELECT connection, month, partner, currency,
           sum(used_rows) FILTER (status NOT IN ('balanced', 'within tolerance')) AS wrong_rows,
           sum(used_amount) FILTER (status NOT IN ('balanced', 'within tolerance')) AS wrong_value,
           sum(billed_amount - used_amount) FILTER (status = 'within tolerance') AS tolerated
    FROM matched GROUP BY ALL
), others AS (
    SELECT connection, month, partner, currency, sum(amount) AS of_others FROM (
        SELECT connection, month, billed_partner AS partner, billed_currency AS currency,
               billed_amount AS amount
        FROM matched WHERE status = 'another partner'
        UNION ALL
        SELECT connection, month, partner, currency, -used_amount
        FROM matched WHERE status = 'another partner'
    ) GROUP BY ALL
), open AS (
    SELECT connection, month, partner, currency, count(*) AS open_breaks
    FROM reconciliation.breaks WHERE state <> 'RESOLVED' AND NOT artefact GROUP BY ALL
), every AS (
    SELECT connection, month, partner, currency FROM usage
    UNION SELECT connection, month, partner, currency FROM billing
), joined AS (
    SELECT e.*, p.name AS partner_name, coalesce(u.used_rows, 0) AS used_rows,
           coalesce(l.billed_rows, 0) AS billed_rows, u.used_quantity, u.expected_amount,
           CASE WHEN u.used_rows IS NULL AND b.billed_amount IS NOT NULL
                     AND unkeyed_usage IS NULL THEN 0
                ELSE u.used_amount END AS used_amount,
           CASE WHEN b.connection IS NULL AND u.used_amount IS NOT NULL
                     AND unkeyed_billing IS NULL THEN 0
                ELSE b.billed_amount END AS billed_amount,
           w.wrong_rows, w.wrong_value, w.tolerated, l.unreferenced, x.of_others,
           coalesce(o.open_breaks, 0) AS open_breaks
    FROM every e CROSS JOIN terms
    LEFT JOIN usage u ON {same_u} LEFT JOIN billing b ON {same_b} LEFT JOIN lines l ON {same_l}
    LEFT JOIN wrong w ON {same_w} LEFT JOIN open o ON {same_o}
    LEFT JOIN others x ON {same_x}
    LEFT JOIN (SELECT connection, partner, min(name) AS name FROM payers GROUP BY ALL) p
      ON (p.connection, p.partner) = (e.connection, e.partner)
)
SELECT connection, month, partner, partner_name, j.currency, used_rows, billed_rows, used_quantity,
       expected_amount, used_amount, billed_amount, billed_amount - used_amount AS variance,
       {variance_percent} AS variance_percent,
       {matched_share_rows} AS matched_share_rows, {matched_share_value} AS matched_share_value,
       coalesce(tolerated, 0) AS tolerated, coalesce(unreferenced, 0) AS unreferenced,
       coalesce(of_others, 0) AS of_others, open_breaks,
       CASE
           WHEN used_amount IS NULL OR billed_amount IS NULL OR month IS NULL THEN 'not evaluated'
           WHEN (month + INTERVAL 1 MONTH)::DATE + grace_days > as_of::DATE THEN 'tentative'
           WHEN open_breaks = 0 AND variance = 0 THEN 'balanced'
           WHEN open_breaks = 0 AND abs(variance) <= month_minor * coalesce(unit, 0.01)
               THEN 'within tolerance'
           ELSE 'out of balance'
       END AS verdict,
       nullif(concat_ws('; ', unkeyed_usage, unkeyed_billing,
           CASE WHEN month IS NULL THEN 'no period is known' END,
           CASE WHEN used_amount IS NULL THEN 'no amount of the usage is known' END,
           CASE WHEN billed_amount IS NULL THEN 'no amount of the bills is known' END,
           CASE WHEN used_quantity IS NULL THEN 'no quantity is known' END,
           CASE WHEN expected_amount IS NULL THEN 'no price is known' END
       ), '') AS not_evaluated
FROM joined j CROSS JOIN terms LEFT JOIN units ON units.currency = j.currency
ORDER BY connection, month, partner, j.currency
"""
KEYS = ("connection", "month", "partner", "currency")


def _same(other: str) -> str:
    """Return the SQL by which groups are the same, of unknown partners or months too."""
    return " AND ".join(f"{other}.{key} IS NOT DISTINCT FROM e.{key}" for key in KEYS)


def _share(part: str, whole: str) -> str:
    """Return the SQL of a share in percent with two decimals, without a floating point number."""
    most = f"nullif(abs(({whole}) * 10000)::HUGEINT, 0)"
    return f"((({part}) * 10000)::HUGEINT * 10000 // {most})::DECIMAL(38, 0) * 0.01"


SHARES = {
    "variance_percent": _share("billed_amount - used_amount", "used_amount"),
    "matched_share_rows": _share("used_rows - coalesce(wrong_rows, 0)", "used_rows"),
    "matched_share_value": _share("used_amount - coalesce(wrong_value, 0)", "used_amount"),
}

RULE = Rule(
    name="summary",
    question="Does billing agree with usage, for each partner, month and currency?",
    sql=SQL.format(**{f"same_{name}": _same(name) for name in "ublwox"}, **SHARES),
    means="`balanced`: equal to the last digit and no open break. `tentative`: the month's bills "
    "may still come. `not evaluated`: an amount is not mapped, or a list has no primary key.",
    remedy="Look at the breaks of the partner and month.",
    columns={
        "used_rows": "records of usage",
        "billed_rows": "lines of bills",
        "used_quantity": "sum of the quantities",
        "expected_amount": "sum of quantity times price, not rounded",
        "used_amount": "sum of the usage's amounts",
        "billed_amount": "sum of the bills' amounts",
        "variance": "billed less used",
        "variance_percent": "the variance in percent of what was used, cut to two decimals",
        "matched_share_rows": "percent of the usage records that agree with their bill",
        "matched_share_value": "percent of the used amount that agrees with its bill",
        "tolerated": "sum of the differences that are within the tolerance, of either sign",
        "unreferenced": "billed on lines that no usage can be matched with, such as flat fees",
        "of_others": "billed here for usage of another partner, less own usage billed to another",
        "open_breaks": "breaks that nobody resolved, paging artefacts apart",
        "verdict": "balanced, within tolerance, out of balance, tentative or not evaluated",
        "not_evaluated": "what is unknown, and why figures are NULL",
    },
)
