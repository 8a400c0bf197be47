"""The partners with the identifiers that others know them by, and what is odd about them."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH active AS (
    SELECT connection, partner, max(month) AS last_used FROM used_groups GROUP BY ALL
), before AS (
    SELECT connection, partner, arg_max(external_id, valid_to) AS external_id_before
    FROM payer_versions v WHERE valid_to IS NOT NULL AND external_id IS DISTINCT FROM (
        SELECT min(p.external_id) FROM payers p
        WHERE (p.connection, p.partner) = (v.connection, v.partner)
    ) GROUP BY ALL
)
SELECT p.connection, p.partner, p.name AS partner_name, p.external_id, external_id_before,
       CASE WHEN external_id IS NULL OR trim(external_id) = '' THEN 'blank'
            WHEN count(*) OVER (PARTITION BY p.connection, external_id) > 1 THEN 'duplicate'
            WHEN b.partner IS NOT NULL THEN 'changed'
       END AS finding,
       a.last_used, a.partner IS NULL AS silent
FROM payers p LEFT JOIN active a USING (connection, partner)
LEFT JOIN before b USING (connection, partner)
ORDER BY finding NULLS LAST, p.connection, p.partner
"""

RULE = Rule(
    name="external_id_map",
    question="Which partner is which of ours, and where is that not clear?",
    sql=SQL,
    means="Two partners with one external id, or a blank one, cannot be told apart outside.",
    remedy="Correct the external id with the service.",
    needs=("partners.id", "partners.external_id"),
    columns={
        "external_id": "the identifier that others know the partner by",
        "external_id_before": "another one that the partner had before",
        "finding": "blank, duplicate or changed; NULL: nothing is odd",
        "last_used": "the newest month with usage",
        "silent": "whether there is no usage of the partner at all",
    },
)
