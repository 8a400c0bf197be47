"""Makes tables of what statements of a month say, once for all partners.

A partner reads amounts of its own rows only. A pair of usage and bills may have rows of several
partners: then each is told what its own rows differ by, whatever the others' rows say.
"""

from datetime import date
from typing import Final

import duckdb

# A scan of all rows for each partner would take hours.
PREPARE: Final = """
CREATE TEMP TABLE statement_totals AS
SELECT
    figures.connection, figures.partner, figures.currency,
    coalesce(figures.used_amount, 0) AS used, coalesce(figures.billed_amount, 0) AS billed,
    coalesce(figures.credited_amount, 0) AS credited,
    coalesce(figures.difference, 0) AS difference, figures.verdict
FROM reconciliation.summary AS figures
WHERE figures.month = $month AND figures.partner IS NOT NULL;
CREATE TEMP TABLE statement_breaks AS
SELECT
    breaks.break_id, breaks.connection, breaks.partner, breaks.currency, breaks.rule, breaks.cause,
    breaks.difference,
    breaks.uncertain IS NOT NULL OR breaks.doubt IS NOT NULL AS is_uncertain,
    -- Of these rules, all rows of a break are of its partner. A new one may share some.
    breaks.rule NOT IN ('unknown_partner', 'unreferenced', 'not_billed', 'disappeared')
        AS may_be_shared
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month AND breaks.state <> 'resolved' AND breaks.partner IS NOT NULL
    -- What only own books say is nothing that a partner is asked for.
    AND breaks.own_source IS NULL;
CREATE TEMP VIEW statement_sides AS
SELECT
    'usage' AS side, used.connection, used.partner, used.key, used.currency, used.id,
    used.id AS record, used._scan_id, used._page, used._row, used.day AS date, used.quantity,
    used.price, used.amount, true AS is_compared
FROM temp.used AS used
UNION ALL BY NAME
SELECT
    'billing' AS side, billed.connection, billed.partner, billed.key, billed.currency, billed.id,
    coalesce(billed.number, billed.bill) AS record, billed._scan_id, billed._page, billed._row,
    billed.issued_at::DATE AS date, billed.quantity, billed.price, billed.amount,
    billed.apart IS NULL OR billed.apart = 'credit note' AS is_compared
FROM temp.billed AS billed
UNION ALL BY NAME
FROM temp.statement_other_months;
CREATE TEMP TABLE statement_found AS
SELECT
    breaks.*, rows.side, rows.id, sides.date, rows.amount, sides.price, sides.key,
    coalesce(sides.quantity, rows.quantity) AS quantity, sides.partner AS owner,
    sides.side IS NOT NULL AS is_known,
    CASE WHEN sides.side IS NOT NULL THEN sides.record
         WHEN breaks.rule = 'disappeared' AND rows.side = 'billing'
            THEN regexp_replace(rows.id, '#[^#]*$', '')
         WHEN breaks.rule = 'disappeared' THEN rows.id END AS record
FROM statement_breaks AS breaks
JOIN reconciliation.break_rows AS rows USING (break_id)
LEFT JOIN statement_sides AS sides
    ON sides.side = rows.side AND sides.connection = breaks.connection AND sides.id = rows.id
    AND sides._scan_id = rows._scan_id AND sides._page = rows._page AND sides._row = rows._row
WHERE NOT breaks.is_uncertain;
CREATE TEMP TABLE statement_shared AS
SELECT pairs.connection, pairs.key, pairs.currency
FROM (
    SELECT DISTINCT found.connection, found.key, found.currency
    FROM statement_found AS found
    WHERE found.may_be_shared AND found.key IS NOT NULL
) AS pairs
JOIN statement_sides AS sides ON sides.connection = pairs.connection AND sides.key = pairs.key
WHERE sides.is_compared
    AND coalesce(sides.currency, pairs.currency) IS NOT DISTINCT FROM pairs.currency
GROUP BY ALL
HAVING count(DISTINCT sides.partner) > 1;
CREATE TEMP TABLE statement_rows AS
SELECT
    found.* EXCLUDE (difference, key, owner),
    -- Of a row that is in no side nobody knows whose it is: in copies of earlier releases, that is
    -- each one of another month.
    if(found.is_known, found.owner IS NOT DISTINCT FROM found.partner, NOT found.may_be_shared)
        AS is_shown
FROM statement_found AS found
ANTI JOIN statement_shared AS shared ON found.may_be_shared
    AND shared.connection = found.connection AND shared.key = found.key
    AND shared.currency IS NOT DISTINCT FROM found.currency
UNION ALL BY NAME
SELECT
    concat_ws('|', 'shared', sides.partner, shared.key, shared.currency) AS break_id,
    shared.connection, sides.partner, shared.currency, 'shared' AS rule, false AS is_uncertain,
    true AS is_known, true AS is_shown, sides.side, sides.id, sides.date, sides.amount,
    sides.price, sides.quantity, sides.record
FROM statement_shared AS shared
JOIN statement_sides AS sides ON sides.connection = shared.connection AND sides.key = shared.key
WHERE sides.is_compared AND sides.partner IS NOT NULL
    AND coalesce(sides.currency, shared.currency) IS NOT DISTINCT FROM shared.currency;
CREATE TEMP TABLE statement_requests AS
WITH sums AS (
    SELECT
        rows.break_id, rows.connection, rows.partner, rows.currency, any_value(rows.rule) AS rule,
        any_value(rows.cause) AS cause, bool_or(rows.may_be_shared) AS may_be_shared,
        bool_and(rows.is_known) AS is_known, count(*) FILTER (rows.is_shown) AS lines,
        count(*) FILTER (rows.side = 'usage') AS used_rows,
        count(*) FILTER (rows.side = 'billing') AS billed_rows,
        CASE WHEN count(rows.amount) > 0
            THEN coalesce(sum(rows.amount) FILTER (rows.side = 'billing'), 0)
                - coalesce(sum(rows.amount) FILTER (rows.side = 'usage'), 0) END AS difference
    FROM statement_rows AS rows
    GROUP BY rows.break_id, rows.connection, rows.partner, rows.currency
)
SELECT
    sums.break_id, sums.connection, sums.partner, sums.currency, false AS is_uncertain, sums.lines,
    CASE WHEN sums.rule <> 'shared' THEN sums.rule
         WHEN sums.used_rows = 0 THEN 'not_used'
         WHEN sums.billed_rows > sums.used_rows THEN 'billed_twice'
         ELSE 'different' END AS rule,
    CASE WHEN sums.rule <> 'shared' THEN sums.cause
         WHEN sums.billed_rows = 0 THEN 'other partner'
         WHEN sums.used_rows = 0 THEN 'usage of another partner' END AS cause,
    -- An amount that may be of others is not told.
    CASE WHEN NOT sums.may_be_shared THEN breaks.difference
         WHEN sums.is_known THEN sums.difference END AS difference
FROM sums
LEFT JOIN statement_breaks AS breaks USING (break_id)
-- A partner's own usage and bill that are equal are nothing to ask for.
WHERE sums.rule <> 'shared' OR sums.used_rows = 0 OR sums.billed_rows = 0
    OR sums.difference IS DISTINCT FROM 0
UNION ALL BY NAME
SELECT
    breaks.break_id, breaks.connection, breaks.partner, breaks.currency, breaks.is_uncertain,
    breaks.rule, breaks.cause, breaks.difference, 0 AS lines
FROM statement_breaks AS breaks
WHERE breaks.is_uncertain;
CREATE TEMP TABLE statement_lines AS
SELECT
    requests.break_id, requests.connection, requests.partner, requests.currency,
    requests.difference, rows.side, rows.id, rows.date, rows.amount, rows.quantity, rows.price,
    rows.record
FROM statement_rows AS rows
JOIN statement_requests AS requests USING (break_id, connection)
WHERE rows.is_shown
ORDER BY requests.connection, requests.partner;
-- The breaks of which a partner is told: also of one whose rows it shares with others.
CREATE TEMP TABLE statement_told AS
SELECT breaks.connection, breaks.partner, breaks.break_id
FROM statement_requests AS requests
JOIN statement_breaks AS breaks USING (break_id)
WHERE NOT requests.is_uncertain
UNION
SELECT found.connection, found.partner, found.break_id
FROM statement_found AS found
JOIN statement_requests AS requests
    ON requests.connection = found.connection AND requests.partner = found.partner
    AND requests.break_id = concat_ws('|', 'shared', found.partner, found.key, found.currency);
"""
# What a copy says of rows of breaks that are of another month: of that it has no other table.
OTHER_MONTHS: Final = """
CREATE TEMP VIEW statement_other_months AS
SELECT DISTINCT
    rows.side, rows.connection, rows.owner AS partner, rows.key, rows.currency, rows.id,
    rows.record, rows._scan_id, rows._page, rows._row, rows.date, rows.quantity, rows.price,
    rows.amount, true AS is_compared
FROM reconciliation.break_rows AS rows
WHERE rows.owner IS NOT NULL
"""
NO_OTHER_MONTHS: Final = """
CREATE TEMP VIEW statement_other_months AS SELECT NULL::VARCHAR AS partner WHERE false
"""
FEES: Final = """
CREATE TEMP TABLE statement_fees AS
SELECT fees.connection, fees.partner, fees.currency, fees.kind, sum(fees.amount) AS amount
FROM reconciliation.without_usage AS fees
WHERE fees.month = $month AND fees.kind IS NOT NULL
GROUP BY ALL
"""
# Copies of the first releases have no accepted fees by kind. Where the copy of a closed month is
# damaged, books have no corrections: then the statement is provisional.
NONE: Final = """
CREATE TEMP TABLE statement_{} AS
SELECT
    NULL::VARCHAR AS connection, NULL::VARCHAR AS partner, NULL::VARCHAR AS currency,
    NULL::VARCHAR AS kind, 0 AS amount
WHERE false
"""
CORRECTIONS: Final = """
CREATE TEMP TABLE statement_corrections AS
SELECT
    posted.connection, posted.partner, posted.currency, posted.month, posted.side,
    if(posted.side = 'billing', regexp_replace(posted.id, '#[^#]*$', ''), posted.id) AS record,
    posted.amount_before, posted.amount_now, posted.difference
FROM reconciliation.corrections AS posted
WHERE posted.posted_to = $month AND posted.partner IS NOT NULL
    -- Partners that were erased share this word.
    AND posted.partner <> '[erased]'
"""
MAY_LACK: Final = {"fees": FEES, "corrections": CORRECTIONS}
PARTNERS: Final = """
SELECT rows.connection, rows.partner FROM statement_totals AS rows
UNION
SELECT rows.connection, rows.partner FROM statement_requests AS rows
UNION
SELECT rows.connection, rows.partner FROM statement_corrections AS rows
ORDER BY ALL
"""
KNOWS_PAYMENTS: Final = """
SELECT count(*) > 0 FROM reconciliation.rules AS rules
WHERE rules.rule = 'receivables' AND rules.evaluated
"""
# Bills and credit notes that count: those of the month, and what is open of all months. What is not
# known makes its sum unknown.
BALANCES: Final = """
CREATE TEMP TABLE statement_balances AS
WITH counted AS (
    SELECT
        bills.connection, bills.partner, bills.currency, bills.amount,
        bills.month IS NOT DISTINCT FROM $month AS is_of_month,
        coalesce(questioned.is_in_question, false) AS is_in_question,
        if(receivables.bill IS NULL, 0, receivables.open_amount) AS open_amount
    FROM temp.bills AS bills
    LEFT JOIN reconciliation.receivables AS receivables
        ON receivables.connection = bills.connection AND receivables.bill = bills.bill
        AND receivables.currency IS NOT DISTINCT FROM bills.currency
    LEFT JOIN finance.bills_with_breaks AS questioned
        ON questioned.connection = bills.connection AND questioned.bill = bills.bill
    WHERE (bills.apart IS NULL OR bills.apart = 'credit note') AND bills.partner IS NOT NULL
)
SELECT
    counted.connection, counted.partner, counted.currency,
    coalesce(sum(counted.amount) FILTER (counted.is_of_month), 0) AS billed,
    if(bool_or(counted.is_of_month AND (counted.open_amount IS NULL OR counted.amount IS NULL)),
        NULL, coalesce(sum(counted.amount - counted.open_amount) FILTER (counted.is_of_month), 0)
    ) AS paid,
    if(bool_or(counted.is_of_month AND counted.open_amount IS NULL), NULL,
        coalesce(sum(counted.open_amount) FILTER (counted.is_of_month), 0)) AS open,
    if(bool_or(counted.is_of_month AND counted.is_in_question AND counted.open_amount IS NULL),
        NULL,
        coalesce(sum(counted.open_amount)
            FILTER (counted.is_of_month AND counted.is_in_question), 0)) AS in_question,
    if(bool_or(counted.open_amount IS NULL), NULL, sum(counted.open_amount)) AS open_of_all
FROM counted
GROUP BY counted.connection, counted.partner, counted.currency
HAVING bool_or(counted.is_of_month) OR open_of_all IS DISTINCT FROM 0
"""
Key = tuple[str, str]
"""Connection and identifier of a partner."""


def prepare(db: duckdb.DuckDBPyConnection, month: date) -> list[Key]:
    """Create tables of a month in open books, or an open copy; return its partners.

    Raises duckdb.Error.
    """
    bound = {"month": month}
    is_copy = "owner" in db.sql("FROM reconciliation.break_rows").columns
    db.execute(OTHER_MONTHS if is_copy else NO_OTHER_MONTHS)
    for statement in db.extract_statements(PREPARE):
        names = {name: bound[name] for name in statement.named_parameters}
        db.execute(statement, names)
    for table, query in MAY_LACK.items():
        try:
            db.execute(query, bound)
        except duckdb.CatalogException:
            db.execute(NONE.format(table))
    return db.execute(PARTNERS).fetchall()


def prepare_balances(db: duckdb.DuckDBPyConnection, month: date) -> bool:
    """Create a table of what partners have paid, in open books with all rows.

    Return whether there is one: not where nobody knows what is paid. Raises duckdb.Error.
    """
    if db.execute(KNOWS_PAYMENTS).fetchall() != [(True,)]:
        return False
    db.execute(BALANCES, {"month": month})
    return True
