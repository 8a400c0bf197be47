-- kind: VIEW
-- question: Which breaks are there, since when, how severe are they, and what was decided?
-- needs: break_facts materiality assignments
-- remedy: Run `partner-sync breaks`, then assign or resolve each break.
-- The rules are in `sql/rules/`. Severity is high from the materiality of the currency on, medium from
-- a tenth. Without a materiality, nobody can say that an amount is small. Age never changes it: it
-- counts from the end of the month, or the day when its bill was due, whenever it was first seen.
-- A decision is about a break as it was then: once it returned, or has another difference or other
-- records, it is open. `since` is when that break began, by the clock of the scans: the clock of the
-- machine on which a person decides may be behind. Earlier releases kept neither.
WITH decided AS (
    SELECT
        decisions.break_id, max_by(decisions, decisions.number) AS last
    FROM reconciliation.decisions AS decisions
    WHERE decisions.kind <> 'break_assign'
    GROUP BY decisions.break_id
), aged AS (
    SELECT
        facts.* REPLACE (
            -- A rule that is not evaluated says nothing: what was found before counts.
            CASE WHEN facts.last_seen IS NULL THEN basis.as_of
                 WHEN facts.gone_at IS NULL THEN coalesce(basis.last_as_of, facts.last_seen)
                 ELSE facts.last_seen END AS last_seen
        ),
        (coalesce(facts.gone_at, basis.as_of) AT TIME ZONE basis.time_zone)::DATE
            - coalesce(facts.due_on, last_day(facts.month)) AS days
    FROM reconciliation.break_facts AS facts
    CROSS JOIN reconciliation.basis AS basis
), judged AS (
    SELECT
        facts.*, material.amount AS materiality,
        TRY_CAST(facts.at_stake AS DECIMAL(38, 18)) AS compared,
        CASE WHEN facts.at_stake IS NULL THEN 'medium'
             WHEN material.amount IS NULL OR compared IS NULL OR compared >= material.amount
                THEN 'high'
             WHEN compared >= material.amount * 0.1 THEN 'medium'
             ELSE 'low' END AS severity,
        assigned.owner, decided.last.person, decided.last.reason,
        coalesce(decided.last.kind = 'break_resolve'
            AND coalesce(decided.last.since, decided.last.decided_at)
                >= coalesce(facts.returned_at, facts.first_seen)
            AND coalesce(decided.last.rows_digest = facts.rows_digest, true)
            AND decided.last.difference IS NOT DISTINCT FROM facts.difference
            AND decided.last.rows = facts.rows, false) AS is_resolved
    FROM aged AS facts
    LEFT JOIN decided USING (break_id)
    LEFT JOIN reconciliation.assignments AS assigned USING (break_id)
    LEFT JOIN reconciliation.materiality AS material
        ON material.currency = facts.currency
)
SELECT
    judged.break_id, judged.rule, judged.severity,
    judged.connection, judged.partner, judged.partner_name, judged.month, judged.currency,
    judged.subject, judged.cause, judged.used_amount, judged.billed_amount, judged.difference,
    judged.rows, judged.rows_digest, judged.first_seen, judged.last_seen, judged.gone_at, judged.returned_at,
    if(judged.days IS NULL, NULL, greatest(0, judged.days)) AS age_days,
    CASE WHEN judged.gone_at IS NOT NULL OR judged.is_resolved THEN 'resolved'
         WHEN judged.owner IS NOT NULL THEN 'assigned' ELSE 'open' END AS state,
    judged.owner,
    CASE WHEN judged.gone_at IS NOT NULL THEN 'evidence'
         WHEN judged.is_resolved THEN judged.person END AS resolved_by,
    judged.reason, judged.uncertain, judged.doubt, judged.due_on, judged.at_stake,
    judged.materiality, judged.own_source,
    if(judged.own_source IS NOT NULL, coalesce(judged.used_amount, 0)
        + coalesce(judged.billed_amount, 0) - judged.difference, NULL) AS own_amount
FROM judged
