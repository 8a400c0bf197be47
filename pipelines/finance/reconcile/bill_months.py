"""The month of a bill that has no period: that of the usage which its lines name, else its issue.

Each line takes the month of its own usage; the bill, and what its lines do not add up to, the
latest of them. It is computed once, as a table, for every version of every bill without a period.
Not here: the month of a bill that has a period (`_gaps` in normalize), which is asked first.
"""

from typing import Final

# A row with a line, or without one for the bill. A line of a version is one that was there then.
CREATE: Final = """
CREATE OR REPLACE {table_kind} {name} AS
WITH bills AS (
    SELECT
        record._connection AS connection, record._key, record._valid_from,
        CAST(date_trunc('month', {issued_on}) AS DATE) AS issued
    FROM {table} AS record
    {joins}
    WHERE {has_no_period}
), lines AS (
    SELECT
        bills.connection, bills._key, bills._valid_from, line._index AS line,
        {line_usage} AS reference
    FROM {lines} AS line
    {line_joins}
    JOIN bills ON bills.connection = line._connection AND bills._key = line._parent_key
        AND line._valid_from <= bills._valid_from
        AND (line._valid_to IS NULL OR line._valid_to > bills._valid_from)
    WHERE reference IS NOT NULL
), used AS (
    SELECT
        used.connection, used.id AS reference, arg_max_null(used.month, used._valid_from) AS month,
        max(used._valid_from) AS usage_from
    FROM ({used}) AS used
    WHERE used.id IN (SELECT lines.reference FROM lines)
    GROUP BY used.connection, used.id
), named AS (
    SELECT lines.*, used.month, used.usage_from
    FROM lines
    JOIN used USING (connection, reference)
)
SELECT named.connection, named._key, named._valid_from, named.line, named.month, 'usage' AS source,
    named.usage_from
FROM named
WHERE named.month IS NOT NULL
UNION ALL
SELECT
    bills.connection, bills._key, bills._valid_from, NULL AS line,
    coalesce(max(named.month), bills.issued) AS month,
    CASE WHEN max(named.month) IS NOT NULL THEN 'usage'
         WHEN bills.issued IS NOT NULL THEN 'issue' END AS source,
    max(named.usage_from) AS usage_from
FROM bills
LEFT JOIN named USING (connection, _key, _valid_from)
GROUP BY bills.connection, bills._key, bills._valid_from, bills.issued
"""
# Joined to a record of a bill, and to a line of one.
OF_BILL: Final = """
LEFT JOIN {name} AS dated ON dated.connection = record._connection AND dated._key = record._key
    AND dated._valid_from = record._valid_from AND dated.line IS NULL
"""
OF_LINE: Final = """
LEFT JOIN {name} AS dated ON dated.connection = bills.connection AND dated._key = bills._key
    AND dated._valid_from = bills._valid_from AND dated.line = line._index
"""
LINE_DATES: Final = """REPLACE (
    coalesce(dated.month, bills.month) AS month,
    coalesce(dated.source, bills.month_from) AS month_from,
    greatest(bills.known_from, dated.usage_from) AS known_from
)"""


def expressions(month: str, has_no_period: str, table: str) -> dict[str, str]:
    """Return the joins of a table of months, and the expressions that read it.

    `month` is that of a bill's period. Without a `table`, every bill has a period. Then nothing is
    joined, which planning and evaluation of each statement would pay for.
    """
    if not table:
        return {
            "of_bill": "",
            "of_line": "",
            "bill_month": month,
            "bill_month_from": "'period'",
            "bill_known_from": "record._valid_from",
            "line_dates": "",
        }
    return {
        "of_bill": OF_BILL.format(name=table),
        "of_line": OF_LINE.format(name=table),
        "bill_month": f"coalesce({month}, dated.month)",
        "bill_month_from": f"if({has_no_period}, dated.source, 'period')",
        "bill_known_from": "greatest(record._valid_from, dated.usage_from)",
        "line_dates": LINE_DATES,
    }
