-- kind: VIEW
-- question: Which breaks are there, since when, how severe are they, and what was decided?
-- needs: break_facts
-- remedy: Run `partner-sync breaks`, then assign or resolve each break.
-- The rules are in `sql/rules/`; severity is that of `break_facts.sql`.
-- A decision is about a break as it was then: once it returned or has another difference, it is open.
WITH decided AS (
    SELECT
        decisions.break_id,
        max_by(decisions.owner, decisions.number) FILTER (decisions.kind = 'break_assign') AS owner,
        max_by(decisions, decisions.number) FILTER (decisions.kind <> 'break_assign') AS last
    FROM reconciliation.decisions AS decisions
    GROUP BY decisions.break_id
), judged AS (
    SELECT
        facts.*, decided.owner, decided.last.person, decided.last.reason,
        coalesce(decided.last.kind = 'break_resolve'
            AND decided.last.decided_at >= coalesce(facts.returned_at, facts.first_seen)
            AND decided.last.difference IS NOT DISTINCT FROM facts.difference
            AND decided.last.rows = facts.rows, false) AS is_resolved
    FROM reconciliation.break_facts AS facts
    LEFT JOIN decided USING (break_id)
)
SELECT
    judged.* EXCLUDE (owner, person, reason, is_resolved, uncertain, doubt),
    CASE WHEN judged.gone_at IS NOT NULL OR judged.is_resolved THEN 'resolved'
         WHEN judged.owner IS NOT NULL THEN 'assigned' ELSE 'open' END AS state,
    judged.owner,
    CASE WHEN judged.gone_at IS NOT NULL THEN 'evidence'
         WHEN judged.is_resolved THEN judged.person END AS resolved_by,
    judged.reason, judged.uncertain, judged.doubt
FROM judged
