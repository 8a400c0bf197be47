-- kind: VIEW
-- question: Does billing agree with usage, for each partner, month and currency?
-- needs: month_facts breaks
-- remedy: See the breaks of the partner and month.
-- A month whose bills equal its usage is balanced, whatever own books say. It is not proven where rows
-- may be missing; a difference that was found is one, also there.
WITH unresolved AS (
    SELECT
        breaks.connection, breaks.partner, breaks.month, breaks.currency,
        count(*) FILTER (breaks.uncertain IS NULL) AS breaks,
        bool_or(breaks.rule <> 'disappeared' AND breaks.uncertain IS NULL) AS is_wrong,
        bool_or(breaks.uncertain IS NOT NULL) AS is_uncertain
    FROM reconciliation.breaks AS breaks
    WHERE breaks.state <> 'resolved' AND breaks.own_source IS NULL
    GROUP BY ALL
), not_complete AS (
    SELECT DISTINCT lists.connection
    FROM reconciliation.lists AS lists
    WHERE lists.is_compared AND lists.complete IS NOT TRUE
), found AS (
    SELECT
        facts.*, coalesce(unresolved.breaks, 0) AS open_breaks,
        coalesce(unresolved.is_wrong, false) AS has_break,
        not_complete.connection IS NOT NULL
            OR (facts.is_wrong AND coalesce(unresolved.is_uncertain, false)) AS may_lack_rows,
        CASE
            WHEN facts.is_tentative THEN 'tentative'
            WHEN facts.is_wrong OR has_break THEN 'out of balance'
            WHEN facts.is_balanced THEN 'balanced'
            WHEN facts.is_fees THEN 'fees'
            ELSE 'within tolerance'
        END AS likely_verdict
    FROM reconciliation.month_facts AS facts
    LEFT JOIN unresolved ON unresolved.connection = facts.connection
        AND unresolved.partner IS NOT DISTINCT FROM facts.partner
        AND unresolved.month IS NOT DISTINCT FROM facts.month
        AND unresolved.currency IS NOT DISTINCT FROM facts.currency
    LEFT JOIN not_complete ON not_complete.connection = facts.connection
    WHERE facts.has_rows OR unresolved.connection IS NOT NULL
)
SELECT
    found.connection, found.partner, found.month, found.currency, found.used_rows,
    found.used_quantity, found.used_amount, found.bills, found.billed_amount, found.fees,
    found.credited_amount, found.not_counted_amount,
    -- Of a month within its tolerance, all of it but fees is covered.
    if(found.likely_verdict = 'within tolerance',
        found.exact - coalesce(found.fees, 0), found.tolerated) AS tolerated,
    found.rounding, found.open_breaks, found.partner_name, found.difference,
    CASE WHEN found.is_doubted THEN 'not proven'
         WHEN found.may_lack_rows AND NOT found.has_break AND NOT found.is_tentative
            THEN 'not proven'
         ELSE found.likely_verdict END AS verdict
FROM found
