-- kind: TEMP TABLE
-- Lines of bills that name no usage, and by what totals differ from their lines (`#rest`). `reason`
-- says what a line is; NULL: nothing explains it, and rule `unreferenced` makes a break of its bill.
-- A bill of an unknown partner is a break as a whole. If a line cannot be read, nobody knows by how
-- much the total differs. A credit note without usage is no charge. It takes back a line of the same
-- amount in the partner's month. One that takes off less than its lines of usage is a charge.
WITH strangers AS (
    SELECT DISTINCT rows.connection, rows._scan_id, rows._page, rows._row
    FROM reconciliation.break_rows AS rows
    WHERE rows.rule = 'unknown_partner' AND rows.side = 'billing'
), unreadable AS (
    SELECT DISTINCT records.connection, records._scan_id, records._page, records._row
    FROM reconciliation.unreadable AS records
    WHERE records.side = 'billing'
), lines AS (
    SELECT
        billed.connection, billed._key, billed.bill, billed.number, billed.id, billed.partner,
        billed.month, billed.currency, billed.apart, billed.unseen, billed.unread, billed.quantity,
        billed.amount, billed.issued_at, billed._scan_id, billed._page, billed._row,
        coalesce(billed.fee, others.kind) AS kind, billed.id LIKE '%#rest' AS is_rest,
        billed.is_whole,
        coalesce(is_rest AND billed.unread IS NULL AND TRY_CAST(abs(billed.amount)
            AS DECIMAL(38, 18)) < currencies.minor_unit * 0.001, false) AS is_small,
        is_small AND abs(sum(billed.amount) FILTER (is_small) OVER one) < currencies.minor_unit
            AS is_rounding,
        CASE WHEN strangers.connection IS NOT NULL THEN 'unknown partner'
             WHEN billed.unread IS NOT NULL OR (is_rest AND unreadable.connection IS NOT NULL)
                THEN 'records that cannot be read'
             WHEN is_rounding THEN 'rounding' END AS reason
    FROM temp.billed AS billed
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    LEFT JOIN strangers USING (connection, _scan_id, _page, _row)
    LEFT JOIN unreadable USING (connection, _scan_id, _page, _row)
    LEFT JOIN (
        SELECT DISTINCT fees.kind FROM accepted_fees AS fees WHERE NOT fees.has_field
    ) AS others ON true
    WHERE billed.key IS NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
        AND billed.amount <> 0
    WINDOW one AS (
        PARTITION BY billed.connection, billed.partner, billed.month, billed.currency
    )
), accepted AS (
    SELECT
        lines.* REPLACE (
            CASE WHEN lines.reason IS NOT NULL THEN lines.reason
                 WHEN fees.up_to IS NULL AND fees.kind IS NOT NULL THEN 'accepted fees'
                 WHEN TRY_CAST(sum(abs(lines.amount)) OVER one AS DECIMAL(38, 18)) <= fees.up_to
                    THEN 'accepted fees' END AS reason
        )
    FROM lines
    LEFT JOIN accepted_fees AS fees
        ON fees.kind = lines.kind AND (fees.up_to IS NULL OR fees.currency = lines.currency)
    WINDOW one AS (
        PARTITION BY lines.connection, lines._key, lines.currency, lines.kind, lines.reason
    )
), placed AS (
    SELECT
        accepted.*, sum(accepted.amount) OVER (
            PARTITION BY accepted.connection, accepted._key, accepted.currency, accepted.reason
        ) AS of_bill, row_number() OVER (
            PARTITION BY accepted.connection, accepted.partner, accepted.month, accepted.currency,
                accepted.amount, accepted.apart, accepted.reason
            ORDER BY accepted.issued_at, accepted.bill, accepted.id
        ) AS place
    FROM accepted
)
SELECT
    placed.* EXCLUDE (place, is_small, of_bill) REPLACE (
        if(placed.reason = 'accepted fees', placed.kind, NULL) AS kind,
        CASE WHEN placed.reason IS NOT NULL THEN placed.reason
             WHEN placed.apart IS NOT NULL AND placed.of_bill <= 0 THEN 'credit note without usage'
             WHEN placed.apart IS NULL AND placed.amount > 0 AND placed.place <= count(*)
                FILTER (placed.apart IS NOT NULL AND placed.amount < 0) OVER one
                THEN 'lines without usage that are credited' END AS reason
    )
FROM placed
WINDOW one AS (
    PARTITION BY placed.connection, placed.partner, placed.month, placed.currency,
        abs(placed.amount), placed.reason
)
