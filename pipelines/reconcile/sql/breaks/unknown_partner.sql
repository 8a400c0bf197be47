-- question: Is every record of usage and every bill of a partner that is in the list?
-- needs: partners.id usage.partner billing.partner
-- remedy: Look the identifier up with the service. No known partner's totals contain these records.
WITH records AS (
    SELECT
        used.connection, used.partner, used.month, used.currency, 'usage' AS side, used.id,
        used.quantity, used.amount, used._scan_id, used._page, used._row
    FROM reconciliation.used AS used
    UNION ALL
    SELECT
        bills.connection, bills.partner, bills.month, bills.currency, 'billing', bills.bill,
        NULL, bills.amount, bills._scan_id, bills._page, bills._row
    FROM reconciliation.bills AS bills
    WHERE bills.apart IS NULL
)
SELECT
    records.*,
    concat_ws('|', records.side, records.partner, records.month, records.currency) AS subject,
    records.side || CASE WHEN records.partner IS NULL THEN ' without a partner'
                         ELSE ' of an unknown partner' END AS cause
FROM records
ANTI JOIN known_partners AS known
    ON known.connection = records.connection AND known.partner = records.partner
