-- question: Do all usage records and bills belong to partners of the list?
-- needs: partners.id usage.partner billing.partner
-- rests on: partners
-- remedy: Ask the service about the identifier. Totals of known partners lack its records.
SELECT
    records.*,
    concat_ws('|', records.side, records.partner, records.month, records.currency) AS subject,
    records.side || if(records.partner IS NULL, ' without a partner', ' of an unknown partner')
        AS cause
FROM versions AS records
ANTI JOIN reconciliation.partners AS known USING (connection, partner)
WHERE records._valid_to IS NULL
    AND NOT coalesce(list_contains(string_split(records.unread, ','), 'partner'), false)
    AND (records.apart IS NULL OR records.apart = 'credit note')
