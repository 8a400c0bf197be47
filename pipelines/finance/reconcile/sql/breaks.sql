-- kind: VIEW
-- question: Which breaks are there, since when, how severe are they, and what was decided?
-- needs: break_facts
-- remedy: Run `partner-sync breaks`, then assign or resolve each break.
-- The rules are in `sql/rules/`. Severity is the level of `break_facts.sql`, and rises with age.
-- A decision is about a break as it was then: once it returned or has another difference, it is open.
WITH decided AS (
    SELECT
        decisions.break_id,
        max_by(decisions.owner, decisions.number) FILTER (decisions.kind = 'break_assign') AS owner,
        max_by(decisions, decisions.number) FILTER (decisions.kind <> 'break_assign') AS last
    FROM reconciliation.decisions AS decisions
    GROUP BY decisions.break_id
), aged AS (
    SELECT
        facts.* REPLACE (
            -- A rule that is not evaluated says nothing: what was found before counts.
            CASE WHEN facts.last_seen IS NULL THEN basis.as_of
                 WHEN facts.gone_at IS NULL THEN coalesce(basis.last_as_of, facts.last_seen)
                 ELSE facts.last_seen END AS last_seen
        ),
        greatest(0, (coalesce(facts.gone_at, basis.as_of) AT TIME ZONE basis.time_zone)::DATE
            - (facts.first_seen AT TIME ZONE basis.time_zone)::DATE) AS age_days
    FROM reconciliation.break_facts AS facts
    CROSS JOIN reconciliation.basis AS basis
), judged AS (
    SELECT
        facts.*, decided.owner, decided.last.person, decided.last.reason,
        coalesce(decided.last.kind = 'break_resolve'
            AND decided.last.decided_at >= coalesce(facts.returned_at, facts.first_seen)
            AND decided.last.difference IS NOT DISTINCT FROM facts.difference
            AND decided.last.rows = facts.rows, false) AS is_resolved
    FROM aged AS facts
    LEFT JOIN decided USING (break_id)
)
SELECT
    judged.break_id, judged.rule,
    CASE judged.level + (judged.age_days > 7)::INTEGER + (judged.age_days > 30)::INTEGER
         WHEN 1 THEN 'low' WHEN 2 THEN 'medium' ELSE 'high' END AS severity,
    judged.connection, judged.partner, judged.partner_name, judged.month, judged.currency,
    judged.subject, judged.cause, judged.used_amount, judged.billed_amount, judged.difference,
    judged.rows, judged.first_seen, judged.last_seen, judged.gone_at, judged.returned_at,
    judged.age_days,
    CASE WHEN judged.gone_at IS NOT NULL OR judged.is_resolved THEN 'resolved'
         WHEN judged.owner IS NOT NULL THEN 'assigned' ELSE 'open' END AS state,
    judged.owner,
    CASE WHEN judged.gone_at IS NOT NULL THEN 'evidence'
         WHEN judged.is_resolved THEN judged.person END AS resolved_by,
    judged.reason, judged.uncertain, judged.doubt
FROM judged
