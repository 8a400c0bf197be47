-- question: Which external id does each partner have, and is it blank, duplicate or changed?
-- needs: month_facts partners.id partners.external_id
-- may lack: any role
-- remedy: Correct the external id with the service.
WITH earlier AS (
    SELECT
        partners.connection, partners.partner,
        arg_max_null(partners.external_id, partners._valid_to) AS external_id
    FROM partners_history AS partners
    JOIN temp.partners AS now USING (connection, partner)
    WHERE partners._valid_to IS NOT NULL AND partners.external_id IS DISTINCT FROM now.external_id
    GROUP BY partners.connection, partners.partner
), active AS (
    SELECT facts.connection, facts.partner, max(facts.month) AS last_month
    FROM reconciliation.month_facts AS facts
    WHERE facts.used_rows > 0
    GROUP BY facts.connection, facts.partner
)
SELECT
    partners.connection, partners.partner, partners.name AS partner_name, partners.external_id,
    earlier.external_id AS external_id_before,
    CASE WHEN coalesce(trim(partners.external_id), '') = '' THEN 'blank'
         WHEN count(*) OVER (PARTITION BY partners.connection, partners.external_id) > 1
            THEN 'duplicate'
         WHEN earlier.partner IS NOT NULL THEN 'changed' END AS finding,
    active.last_month
FROM temp.partners AS partners
LEFT JOIN earlier USING (connection, partner)
LEFT JOIN active USING (connection, partner)
ORDER BY finding NULLS LAST, partners.connection, partners.partner
