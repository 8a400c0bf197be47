-- needs: break_facts
-- What lines bill that name no usage, by reason and sign. A break of an unknown partner has whole
-- bills.
SELECT
    billed.connection, billed.partner, billed.month, billed.currency,
    if(billed.unread IS NULL, coalesce(billed.apart, 'lines') || ' without usage',
        'records that cannot be read') AS reason,
    sign(billed.amount) AS sign, count(*) AS lines, sum(billed.amount) AS amount
FROM temp.billed AS billed
ANTI JOIN reconciliation.break_rows AS rows
    ON rows.rule = 'unknown_partner' AND rows.connection = billed.connection
    AND (rows._scan_id, rows._page, rows._row) = (billed._scan_id, billed._page, billed._row)
WHERE billed.key IS NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
    AND billed.amount <> 0
GROUP BY ALL
