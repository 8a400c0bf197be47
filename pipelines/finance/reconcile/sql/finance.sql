-- Views for people: names of partners in place of identifiers.
-- Each ends with the identifiers that say exactly whose row it is.
CREATE OR REPLACE VIEW finance.names AS
SELECT partners.connection, partners.partner AS partner_id, partners.name AS partner
FROM reconciliation.partners AS partners
WHERE partners.partner IS NOT NULL;

-- A month can be out of balance without a break of its partner: a pair with another partner is in the
-- months of both, and is a break of one of them.
CREATE OR REPLACE VIEW finance.partner_months AS
WITH causes AS (
    SELECT breaks.connection, breaks.partner, breaks.month, breaks.currency, breaks.cause, 1 AS level
    FROM reconciliation.breaks AS breaks
    WHERE breaks.gone_at IS NULL AND breaks.own_source IS NULL
    UNION ALL
    SELECT
        pairs.connection, unnest([pairs.partner, pairs.billed_partner]), pairs.month,
        pairs.currency,
        concat_ws(' ', if(pairs.status = 'billed twice', 'other partner', pairs.status),
            unnest([pairs.billed_partner, pairs.partner])), 2
    FROM reconciliation.exceptions AS pairs
    WHERE pairs.status IN ('unknown partner', 'other partner')
        OR (pairs.status = 'billed twice' AND pairs.billed_partner <> pairs.partner)
), likely AS (
    SELECT
        causes.connection, causes.partner, causes.month, causes.currency,
        arg_min(causes.cause, (causes.level, causes.cause)) AS cause
    FROM causes
    GROUP BY causes.connection, causes.partner, causes.month, causes.currency
)
SELECT
    coalesce(summary.partner_name, summary.partner, 'no partner') AS partner, summary.month,
    summary.currency,
    coalesce(summary.used_amount, 0) AS used,
    coalesce(summary.billed_amount, 0) AS billed,
    coalesce(summary.credited_amount, 0) AS credited,
    coalesce(summary.fees, 0) AS fees, summary.difference,
    coalesce(summary.rounding, 0) AS rounding, coalesce(summary.tolerated, 0) AS tolerated,
    summary.verdict,
    CASE
        WHEN summary.verdict = 'fees' THEN 'lines without usage'
        WHEN summary.verdict NOT IN ('out of balance', 'not proven') THEN NULL
        WHEN likely.cause IS NOT NULL THEN likely.cause
        WHEN summary.verdict = 'not proven' THEN 'records that are missing or cannot be read'
        WHEN summary.credited_amount <> 0 THEN 'credit note'
        WHEN summary.fees < 0 THEN 'lines without usage'
        ELSE 'usage, its bill or a credit note are of two months'
    END AS cause,
    summary.open_breaks, summary.connection, summary.partner AS partner_id
FROM reconciliation.summary AS summary
LEFT JOIN likely
    ON likely.connection = summary.connection
    AND likely.partner IS NOT DISTINCT FROM summary.partner
    AND likely.month IS NOT DISTINCT FROM summary.month
    AND likely.currency IS NOT DISTINCT FROM summary.currency;

CREATE OR REPLACE VIEW finance.month_totals AS
SELECT
    months.month, months.currency,
    sum(months.used) AS used, sum(months.billed) AS billed, sum(months.credited) AS credited,
    sum(months.difference) AS difference, sum(months.rounding) AS rounding,
    sum(months.tolerated) AS tolerated,
    count(*) AS partners,
    count(*) FILTER (months.verdict = 'out of balance') AS partners_out_of_balance,
    count(*) FILTER (months.verdict = 'not proven') AS partners_not_proven,
    sum(months.open_breaks)::BIGINT AS open_breaks, months.connection
FROM finance.partner_months AS months
GROUP BY months.month, months.currency, months.connection;

CREATE OR REPLACE VIEW finance.open_breaks AS
SELECT
    breaks.break_id, breaks.severity, breaks.rule,
    coalesce(breaks.partner_name, breaks.partner, 'no partner') AS partner, breaks.month,
    breaks.currency, breaks.cause,
    breaks.used_amount AS used, breaks.billed_amount AS billed, breaks.difference,
    breaks.materiality, breaks.rows, breaks.first_seen, breaks.age_days, breaks.state, breaks.owner, breaks.uncertain,
    breaks.connection, breaks.partner AS partner_id
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved'
ORDER BY
    list_position(['high', 'medium', 'low'], breaks.severity),
    breaks.at_stake IS NULL, breaks.at_stake / breaks.materiality DESC NULLS FIRST,
    breaks.at_stake DESC, breaks.break_id;

CREATE OR REPLACE VIEW finance.partners AS
SELECT
    coalesce(ids.partner_name, ids.partner) AS partner,
    ids.* EXCLUDE (connection, partner, partner_name), ids.connection, ids.partner AS partner_id
FROM reconciliation.external_ids AS ids;

CREATE OR REPLACE VIEW finance.unbilled_usage AS
SELECT
    coalesce(names.partner, exceptions.partner, 'no partner') AS partner, exceptions.month,
    exceptions.currency, exceptions.used_quantity AS quantity, exceptions.used_amount AS used,
    coalesce((exceptions.month + INTERVAL 1 MONTH)::DATE + basis.grace_days
        <= ((
            SELECT coalesce(
                max(lists.complete_at) FILTER (lists.stream = 'billing'), max(lists.ended_at)
            )
            FROM reconciliation.lists AS lists
            WHERE lists.connection = exceptions.connection AND lists.is_compared
        ) AT TIME ZONE basis.time_zone)::DATE, true) AS is_due,
    exceptions.key AS usage, exceptions.connection, exceptions.partner AS partner_id
FROM reconciliation.exceptions AS exceptions
CROSS JOIN reconciliation.basis AS basis
LEFT JOIN finance.names AS names
    ON names.connection = exceptions.connection AND names.partner_id = exceptions.partner
-- Also what a credit note takes back as a whole, and nobody billed again.
WHERE exceptions.used_rows > 0 AND exceptions.status <> 'unreadable' AND (
    exceptions.billed_rows = 0 OR exceptions.credited_amount <> 0
        AND sign(exceptions.billed_amount + exceptions.credited_amount)
            * sign(exceptions.used_amount) <= 0
);

CREATE OR REPLACE VIEW finance.accepted_fees AS
SELECT
    coalesce(names.partner, fees.partner, 'no partner') AS partner, fees.month, fees.currency,
    fees.kind, sum(fees.lines)::BIGINT AS lines, sum(fees.amount) AS billed, fees.connection,
    fees.partner AS partner_id
FROM reconciliation.without_usage AS fees
LEFT JOIN finance.names AS names
    ON names.connection = fees.connection AND names.partner_id = fees.partner
WHERE fees.kind IS NOT NULL
GROUP BY ALL;

CREATE OR REPLACE VIEW finance.bills AS
SELECT
    bills.bill, bills.number, coalesce(names.partner, bills.partner, 'no partner') AS partner,
    bills.month, bills.month_from, bills.currency, bills.issued_at, bills.due_on, bills.paid_on,
    bills.usage_lines,
    bills.amount AS billed, bills.apart AS set_apart, bills.connection,
    bills.partner AS partner_id
FROM reconciliation.bill_totals AS bills
LEFT JOIN finance.names AS names
    ON names.connection = bills.connection AND names.partner_id = bills.partner;

CREATE OR REPLACE VIEW finance.changes AS
SELECT
    changes.changed_at, changes.side, changes.id,
    coalesce(names.partner, changes.partner, 'no partner') AS partner, changes.month,
    changes.currency, changes.amount_before, changes.amount_after, changes.difference,
    changes.quantity_before, changes.quantity_after, changes.apart AS set_apart,
    changes.after_month, changes.connection, changes.partner AS partner_id
FROM reconciliation.restatements AS changes
LEFT JOIN finance.names AS names
    ON names.connection = changes.connection AND names.partner_id = changes.partner;

CREATE OR REPLACE VIEW finance.balances AS
SELECT
    coalesce(names.partner, balances.partner, 'no partner') AS partner,
    balances.* EXCLUDE (connection, partner, difference), balances.connection,
    balances.partner AS partner_id
FROM reconciliation.rollforward AS balances
LEFT JOIN finance.names AS names
    ON names.connection = balances.connection AND names.partner_id = balances.partner;

CREATE OR REPLACE VIEW finance.corrections AS
SELECT
    posted.posted_to, coalesce(names.partner, posted.partner, 'no partner') AS partner,
    posted.month, posted.side, posted.id, posted.currency, posted.amount_before,
    posted.amount_now, posted.difference, posted.seen_at, posted.connection,
    posted.partner AS partner_id
FROM reconciliation.corrections AS posted
LEFT JOIN finance.names AS names
    ON names.connection = posted.connection AND names.partner_id = posted.partner;

CREATE OR REPLACE VIEW finance.read_otherwise AS
SELECT
    lines.month, lines.cause, lines.side, lines.id,
    coalesce(names.partner, lines.partner, 'no partner') AS partner, lines.currency,
    lines.amount_before, lines.amount_now, lines.difference, lines.connection,
    lines.partner AS partner_id
FROM reconciliation.read_otherwise AS lines
LEFT JOIN finance.names AS names
    ON names.connection = lines.connection AND names.partner_id = lines.partner;

-- What is for no usage is of another kind: credit note, or fee.
CREATE OR REPLACE VIEW finance.totals AS
SELECT
    coalesce(names.partner, totals.partner, 'no partner') AS partner, totals.month,
    totals.currency, totals.plan, totals.metric, totals.unit, totals.region, totals.organization,
    totals.kind, totals.used_rows, totals.used_quantity, totals.used_amount AS used,
    totals.billed_rows, totals.billed_quantity, totals.billed_amount AS billed,
    totals.connection, totals.partner AS partner_id
FROM reconciliation.totals AS totals
LEFT JOIN finance.names AS names
    ON names.connection = totals.connection AND names.partner_id = totals.partner;

-- Why a month is not like the one before: all parts add up to the difference.
CREATE OR REPLACE VIEW finance.flux AS
SELECT
    coalesce(names.partner, flux.partner, 'no partner') AS partner, flux.month, flux.currency,
    flux.side, flux.amount_before AS before, flux.amount AS now,
    flux.* EXCLUDE (connection, partner, month, currency, side, amount_before, amount),
    flux.connection, flux.partner AS partner_id
FROM reconciliation.flux AS flux
LEFT JOIN finance.names AS names
    ON names.connection = flux.connection AND names.partner_id = flux.partner;

-- The same by plan, metric, unit and region: `flux` is their sum.
CREATE OR REPLACE VIEW finance.flux_items AS
SELECT
    coalesce(names.partner, items.partner, 'no partner') AS partner, items.month, items.currency,
    items.side, items.kind, items.plan, items.metric, items.unit, items.region,
    items.quantity_before, items.quantity, items.amount_before AS before, items.amount AS now,
    items.* EXCLUDE (
        connection, partner, month, currency, side, kind, plan, metric, unit, region,
        quantity_before, quantity, amount_before, amount
    ),
    items.connection, items.partner AS partner_id
FROM reconciliation.flux_items AS items
LEFT JOIN finance.names AS names
    ON names.connection = items.connection AND names.partner_id = items.partner;

-- What is billed twice is not in question on its first bill, nor is what may only be missing rows.
CREATE OR REPLACE VIEW finance.bills_with_breaks AS
WITH named AS (
    SELECT
        rows.break_id, rows.connection, regexp_replace(rows.id, '#(\d+|rest)$', '') AS bill,
        false AS is_first
    FROM reconciliation.break_rows AS rows
    WHERE rows.side = 'billing'
    UNION ALL
    SELECT rows.break_id, rows.connection, rows.first_bill, true
    FROM reconciliation.break_rows AS rows
    WHERE rows.first_bill IS NOT NULL
)
SELECT
    named.connection, named.bill,
    bool_or(breaks.state <> 'resolved' AND breaks.own_source IS NULL AND NOT named.is_first
        AND breaks.uncertain IS NULL AND breaks.doubt IS NULL
        AND coalesce(breaks.difference > 0, true)) AS is_in_question
FROM named
JOIN reconciliation.breaks AS breaks USING (break_id)
GROUP BY named.connection, named.bill;

CREATE OR REPLACE VIEW finance.receivables AS
WITH aged AS (
    SELECT
        bills.*, (basis.as_of AT TIME ZONE basis.time_zone)::DATE - bills.due_on AS days_overdue
    FROM reconciliation.receivables AS bills
    CROSS JOIN reconciliation.basis AS basis
)
SELECT
    bills.bill, bills.number, coalesce(names.partner, bills.partner, 'no partner') AS partner,
    bills.month, bills.currency, bills.issued_at, bills.due_on, bills.amount AS billed, bills.tax,
    bills.open_amount AS open, bills.days_overdue,
    CASE WHEN bills.due_on IS NULL THEN 'no due date'
         WHEN bills.days_overdue <= 0 THEN 'not due'
         WHEN bills.days_overdue <= 30 THEN '1-30'
         WHEN bills.days_overdue <= 60 THEN '31-60'
         WHEN bills.days_overdue <= 90 THEN '61-90' ELSE '>90' END AS days,
    CASE WHEN bills.due_on IS NULL THEN 'no due date'
         WHEN bills.days_overdue > 0 THEN 'overdue'
         WHEN bills.days_overdue >= -7 THEN 'next 7 days'
         WHEN bills.days_overdue >= -30 THEN '8 to 30 days' ELSE 'later' END AS due_in,
    bills.connection, bills.partner AS partner_id
FROM aged AS bills
LEFT JOIN finance.names AS names
    ON names.connection = bills.connection AND names.partner_id = bills.partner;

CREATE OR REPLACE VIEW finance.closes AS
SELECT
    closes.month, closes.number, closes.state, closes.approval, closes.preparer, closes.closed_at,
    closes.reviewer, closes.approved_at, closes.note, closes.accept_open, closes.changed_records,
    closes.net_difference, closes.reopened_by, closes.reopened_at, closes.reopened_reason,
    closes.connections,
    closes.manifest_sha256
FROM reconciliation.closes AS closes;
