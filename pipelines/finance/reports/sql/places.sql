-- Where `recent` shows a month: 0 is the month of the data, 1 and 2 are those before it; 3 are
-- other months that are signed off, 4 all others.
-- needs: as_of months
WITH known AS (
    SELECT months.month FROM months
    UNION
    SELECT breaks.month FROM reconciliation.breaks AS breaks
    WHERE breaks.own_source IS NULL
    UNION
    SELECT changed.month FROM reconciliation.closes AS changed WHERE changed.state = 'outdated'
    UNION
    SELECT (date_trunc('month', as_of.as_of::DATE) - to_months(unnest([0, 1, 2])))::DATE FROM as_of
)
SELECT
    known.month, coalesce(
        if(closes.state = 'closed' AND NOT closes.has_mapping, 'other mapping', closes.state), (
        SELECT 'not known' FROM reconciliation.rules AS rules
        WHERE rules.rule = 'closes' AND NOT rules.evaluated
    )) AS state,
    coalesce(closes.approved_at, closes.closed_at) AS closed_at, closes.changed_records,
    date_diff('month', known.month, as_of.as_of::DATE) AS age,
    CASE WHEN age BETWEEN 0 AND 2 THEN age
         WHEN closes.state IN ('closed', 'outdated') THEN 3 ELSE 4 END AS place
FROM known
CROSS JOIN as_of
-- A month that is closed for some connections is open as a whole.
LEFT JOIN reconciliation.closes AS closes
    ON closes.month = known.month AND closes.connections IS NULL
QUALIFY closes.number IS NOT DISTINCT FROM max(closes.number) OVER (PARTITION BY known.month)
