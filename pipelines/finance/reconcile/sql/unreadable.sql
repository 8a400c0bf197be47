-- question: Could every record of partners, usage and billing be read?
-- remedy: Say the type of the field in settings.toml, or correct the role in mapping.toml.
-- Records with a value that a figure needs and that cannot be read, and records in quarantine. They
-- are not absent: `any_...` say of what such a record may be. `roles` are those that cannot be read,
-- `sent` is what was sent for one of them. By usage, a whole bill may bill any amount.
WITH records AS (
    SELECT
        'partners' AS side, partners.connection, partners.partner AS id, partners.partner,
        partners.unread AS roles,
        partners.unread_text AS sent, partners._scan_id, partners._page, partners._row
    FROM temp.partners AS partners
    WHERE partners.unread IS NOT NULL
    UNION ALL BY NAME
    SELECT
        'usage' AS side, used.connection, used.id, used.partner, used.month, used.currency,
        used.amount, used.unread AS roles, used.unread_text AS sent, used._scan_id, used._page,
        used._row
    FROM temp.used AS used
    WHERE used.unread IS NOT NULL
    UNION ALL BY NAME
    SELECT
        'billing' AS side, bills.connection, bills.bill AS id, bills.partner, bills.month,
        bills.currency, bills.amount, bills.unread AS roles, bills.unread_text AS sent,
        getvariable('match_by') = 'usage' AS is_whole, bills._scan_id, bills._page, bills._row
    FROM temp.bills AS bills
    WHERE bills.unread IS NOT NULL AND coalesce(bills.apart, 'credit note') = 'credit note'
    UNION ALL BY NAME
    SELECT
        'billing' AS side, billed.connection, billed.id, billed.partner, billed.month,
        billed.currency, billed.amount, billed.unread AS roles, billed.unread_text AS sent,
        billed._scan_id, billed._page, billed._row
    FROM temp.billed AS billed
    WHERE contains(billed.unread, 'line_') AND coalesce(billed.apart, 'credit note') = 'credit note'
    UNION ALL BY NAME
    SELECT records.*, getvariable('match_by') = 'usage' AND records.side = 'billing' AS is_whole
    FROM quarantined AS records
)
SELECT
    records.side, records.connection, records.id, records.partner, records.month, records.currency,
    records.amount, coalesce(records.roles, '') AS roles, fields.field, records.sent, records.quarantine,
    list_has_any(records.names, if(records.side = 'partners', ['id', 'record'], ['partner', 'record']))
        AS any_partner,
    -- A bill without a period may be of any month: in tables, its lines say which.
    records.side = 'partners' OR list_has_any(records.names, ['period', 'record'])
        OR (records.side = 'billing' AND records.quarantine IS NOT NULL AND records.month IS NULL)
        AS any_month,
    records.side = 'partners' OR list_has_any(records.names, ['currency', 'line_currency', 'record']) AS any_currency,
    records.side = 'partners' OR coalesce(records.is_whole, false)
        OR list_has_any(records.names, ['amount', 'line_amount', 'lines', 'record']) AS any_amount,
    records._scan_id, records._page, records._row
FROM (SELECT records.*, string_split(coalesce(records.roles, ''), ',') AS names FROM records)
    AS records
LEFT JOIN role_fields AS fields ON fields.role = concat(records.side, '.', records.names[1])
