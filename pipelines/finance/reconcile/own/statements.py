"""The statements that compare the rows of own books with the records of the service.

Here: SQL with gaps for one source. Not here: what stands in the gaps, and what became of a source
(third_side).
"""

from typing import Final

# What is known of each source, of its files, rows and totals. Only where the mapping has any.
CREATE: Final = """
CREATE TABLE reconciliation.own_sources (
    source VARCHAR, connection VARCHAR, against VARCHAR, place VARCHAR, match_by VARCHAR,
    read_at TIMESTAMPTZ, sha256 VARCHAR, rows BIGINT, rows_before BIGINT, not_understood BIGINT,
    matched BIGINT, evaluated BOOLEAN, reason VARCHAR, fewest_rows BIGINT, begins DATE,
    left_out BIGINT
);
CREATE TABLE reconciliation.own_files (
    source VARCHAR, connection VARCHAR, file VARCHAR, sha256 VARCHAR, rows BIGINT
);
CREATE TABLE reconciliation.own_unread (
    source VARCHAR, connection VARCHAR, file VARCHAR, row BIGINT, role VARCHAR, sent VARCHAR
);
CREATE TABLE reconciliation.own_totals (
    source VARCHAR, connection VARCHAR, against VARCHAR, month DATE, currency VARCHAR,
    own_rows BIGINT, own_amount {amount}, service_rows BIGINT, service_amount {amount},
    difference {amount}
);
"""
INSERT_FILE: Final = """
INSERT INTO reconciliation.own_files
SELECT $source, $connection, $file, $sha256, count(*)
FROM {table}_read AS own
WHERE own.file = $number
"""
INSERT_UNREAD: Final = """
INSERT INTO reconciliation.own_unread
SELECT
    $source, $connection, ($files::VARCHAR[])[own.file + 1], own.row, own.unread,
    left(hidden(own.sent, own.sent), 80)
FROM {table} AS own
WHERE own.unread IS NOT NULL
LIMIT 1000
"""
# Records of the service: `is_counted` are those that count in its totals.
USAGE: Final = """
CREATE OR REPLACE TEMP VIEW {service} AS
SELECT
    used.id, {key} AS key, used.partner, used.month, used.currency,
    CAST(used.amount AS DECIMAL(38, {scale})) AS amount,
    CAST(used.quantity AS DECIMAL(38, {quantity_scale})) AS quantity, used.unread,
    NULL::VARCHAR AS apart, true AS is_counted, used._scan_id, used._page, used._row
FROM temp.used AS used
WHERE used.connection = {connection}
"""
BILLING: Final = """
CREATE OR REPLACE TEMP VIEW {service} AS
SELECT
    bills.bill AS id, {key} AS key, bills.partner, bills.month, bills.currency,
    CAST(bills.amount AS DECIMAL(38, {scale})) AS amount,
    NULL::DECIMAL(38, {quantity_scale}) AS quantity, bills.unread, bills.apart,
    coalesce(bills.apart, 'credit note') = 'credit note' AS is_counted,
    bills._scan_id, bills._page, bills._row
FROM temp.bills AS bills
WHERE bills.connection = {connection}
"""
TOTALS_KEY: Final = "concat_ws('|', {rows}.partner, {rows}.month, {rows}.currency)"
# A hash of a key costs a tenth of the key. One own row and one record that say the same are equal,
# and so are totals: only the others are compared one by one. Each aggregate is a few bytes of each
# key: what they cost is memory.
KEYS: Final = """
CREATE OR REPLACE TEMP TABLE own_keys AS
WITH rows AS (
    SELECT
        hash(own.key) AS hash, 1 AS own, NULL AS counted, {own_content} AS content,
        own.amount, own.quantity, NULL::DATE AS service_month, own.unread IS NOT NULL AS is_unread
    FROM {table} AS own
    UNION ALL
    SELECT
        hash(service.key), NULL, if(service.is_counted, 1, NULL), {service_content},
        if(service.is_counted, -service.amount, 0), if(service.is_counted, -service.quantity, 0),
        service.month, service.unread IS NOT NULL
    FROM temp.{service} AS service
)
SELECT
    rows.hash, count(rows.own) AS own_rows, count(rows.counted) AS counted_rows,
    min(rows.service_month) AS service_month, {is_odd} AS is_odd
FROM rows
GROUP BY rows.hash
"""
# What has to be equal of two rows. Nothing is equal to a row that is not understood or not counted.
OWN_CONTENT: Final = "hash({equal}, if(own.unread IS NULL, NULL, 'own'))"
SERVICE_CONTENT: Final = """
hash({equal}, if(service.unread IS NULL AND service.is_counted, NULL, 'service'))"""
ODD_ROWS: Final = "own_rows <> 1 OR counted_rows <> 1 OR bit_xor(rows.content) <> 0"
ODD_TOTALS: Final = """bool_or(rows.is_unread) OR CASE WHEN own_rows > 0 AND counted_rows > 0
    THEN sum(rows.amount) <> 0 OR coalesce(sum(rows.quantity) <> 0, false) ELSE true END"""
MATCHED: Final = """
SELECT count(*) FROM own_keys AS keys WHERE keys.own_rows > 0 AND keys.counted_rows > 0
"""
# Both sides by month: what follows needs no single row of them.
MONTHS: Final = """
CREATE OR REPLACE TEMP TABLE own_months AS
SELECT
    'own' AS side, own.month, own.currency, own.unread IS NOT NULL AS is_unread,
    false AS is_counted, count(*) AS rows, sum(own.amount) AS amount
FROM {table} AS own
GROUP BY ALL
UNION ALL BY NAME
SELECT
    'service' AS side, service.month, service.currency, service.unread IS NOT NULL AS is_unread,
    service.is_counted, count(*) AS rows, sum(service.amount) AS amount
FROM temp.{service} AS service
GROUP BY ALL
"""
# Own books begin with the first month of a record that they have, or of theirs if the service has
# records of it: one wrong year in own books makes nothing begin earlier.
BEGIN: Final = """
SET VARIABLE own_begin = coalesce({begins}, least((
    SELECT min(keys.service_month) FROM own_keys AS keys WHERE keys.own_rows > 0
), (
    SELECT min(own.month)
    FROM own_months AS own
    JOIN own_months AS service USING (month)
    WHERE own.side = 'own' AND NOT own.is_unread AND service.side = 'service'
)))
"""
BEGAN: Final = "SELECT getvariable('own_begin')"
# Of those, nobody knows whether own books agree.
UNREAD_RECORDS: Final = """
SELECT coalesce(sum(months.rows), 0)
FROM own_months AS months
WHERE months.is_counted AND months.is_unread
    AND (months.month IS NULL OR months.month >= getvariable('own_begin'))
"""
FOUND: Final = """
CREATE OR REPLACE TEMP TABLE own_found AS
WITH rows AS (
    SELECT
        'own' AS side, own.key, own.partner, own.month, own.currency, own.id, own.quantity,
        own.amount, own.unread, NULL::VARCHAR AS apart, false AS is_counted, own.file,
        NULL::VARCHAR AS _scan_id, NULL::INTEGER AS _page, own.row AS _row
    FROM {table} AS own
    JOIN own_keys AS keys ON keys.hash = hash(own.key) AND keys.is_odd
    UNION ALL BY NAME
    SELECT
        '{against}' AS side, service.key, service.partner, service.month, service.currency,
        service.id, service.quantity, service.amount, service.unread, service.apart,
        service.is_counted, service._scan_id, service._page, service._row
    FROM temp.{service} AS service
    JOIN own_keys AS keys ON keys.hash = hash(service.key) AND keys.is_odd
    WHERE keys.own_rows > 0 OR service.month IS NULL OR service.month >= getvariable('own_begin')
), pairs AS (
    SELECT
        rows.key, rows.currency,
        count(*) FILTER (rows.side = 'own') AS own_rows,
        count(*) FILTER (rows.is_counted) AS counted_rows,
        sum(rows.quantity) FILTER (rows.side = 'own') AS own_quantity,
        sum(rows.quantity) FILTER (rows.is_counted) AS service_quantity,
        sum(rows.amount) FILTER (rows.side = 'own') AS own_amount,
        sum(rows.amount) FILTER (rows.is_counted) AS service_amount,
        coalesce(service_amount, 0) - coalesce(own_amount, 0) AS difference,
        min(rows.partner) FILTER (rows.is_counted) AS service_partner,
        min(rows.partner) FILTER (rows.side = 'own') AS own_partner,
        max(rows.partner) FILTER (rows.side = 'own') AS last_partner,
        min(rows.month) FILTER (rows.is_counted) AS service_month,
        min(rows.month) FILTER (rows.side = 'own') AS own_month,
        max(rows.month) FILTER (rows.side = 'own') AS last_month
    FROM rows
    WHERE rows.side = 'own' OR rows.is_counted
    GROUP BY rows.key, rows.currency
), keys AS (
    SELECT
        rows.key, bool_or(rows.unread IS NOT NULL AND (rows.side = 'own' OR (
            -- Of totals, the records that can be read are compared.
            rows.is_counted AND NOT {by_totals}))) AS is_unread,
        max(rows.apart) AS apart,
        count(*) FILTER (rows.side = 'own') AS own_rows,
        count(*) FILTER (rows.is_counted) AS counted_rows,
        min(rows.partner) FILTER (rows.is_counted) AS service_partner,
        min(rows.month) FILTER (rows.is_counted) AS service_month
    FROM rows
    GROUP BY rows.key
), tolerant AS (
    SELECT
        pairs.*, keys.is_unread, keys.apart, keys.own_rows AS own_in_key,
        keys.counted_rows AS counted_in_key, keys.service_partner AS key_partner,
        keys.service_month AS key_month,
        coalesce(keys.service_partner, pairs.own_partner) AS partner,
        coalesce(keys.service_month, pairs.own_month) AS month,
        coalesce(TRY_CAST(abs(pairs.difference) AS DECIMAL(38, 18)) < currencies.minor_unit * 0.001,
            false) AS is_rounding,
        coalesce(TRY_CAST(abs(pairs.difference) AS DECIMAL(38, 16)) <= greatest(
            coalesce({minor_terms}) * coalesce(currencies.minor_unit, 0.01), {share_terms}
        ), false) AS is_tolerated,
        -- A month that is far ahead of the service is a wrong one: it would never be due.
        month <= read_until.day + INTERVAL 1 MONTH
            AND (month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days') > read_until.day
            AS is_early
    FROM pairs
    JOIN keys USING (key)
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
    LEFT JOIN tolerances AS by_partner
        ON by_partner.partner = coalesce(keys.service_partner, pairs.own_partner)
    LEFT JOIN tolerances AS by_currency ON by_currency.currency = pairs.currency
    LEFT JOIN read_until ON read_until.connection = {connection}
), judged AS (
    SELECT
        pairs.*,
        CASE
            WHEN pairs.is_unread THEN NULL
            WHEN pairs.is_early AND ({by_totals} OR pairs.own_in_key = 0
                OR pairs.counted_in_key = 0) THEN NULL
            -- Booked and reversed.
            WHEN pairs.counted_rows = 0 AND pairs.difference = 0 THEN NULL
            WHEN pairs.counted_in_key = 0 AND starts_with(pairs.key, '?|')
                THEN 'own rows without an identifier'
            WHEN pairs.counted_in_key = 0
                THEN concat('only in own books', '; the bill is ' || pairs.apart)
            WHEN pairs.own_in_key = 0 THEN 'missing in own books'
            WHEN pairs.own_rows = 0 OR pairs.counted_rows = 0 THEN 'other currency'
            WHEN NOT {by_totals} AND pairs.own_rows > pairs.counted_rows
                AND NOT pairs.is_rounding AND NOT pairs.is_tolerated
                AND sign(pairs.difference) <> sign(coalesce(pairs.service_amount, 0))
                THEN 'more than once in own books'
            WHEN pairs.own_partner <> pairs.key_partner OR pairs.last_partner <> pairs.key_partner
                THEN 'other partner'
            WHEN pairs.own_month <> pairs.key_month OR pairs.last_month <> pairs.key_month
                THEN 'other month'
            WHEN pairs.own_quantity <> pairs.service_quantity
                AND abs(pairs.own_quantity - pairs.service_quantity)::DOUBLE
                    > 1e-12 * abs(pairs.service_quantity)::DOUBLE THEN 'other quantity'
            WHEN pairs.service_amount IS NULL THEN 'other amount'
            WHEN pairs.difference = 0 OR pairs.is_rounding OR pairs.is_tolerated THEN NULL
            WHEN {by_totals} THEN 'other total'
            ELSE 'other amount'
        END AS cause
    FROM tolerant AS pairs
)
SELECT rows.* REPLACE (judged.partner AS partner, judged.month AS month), judged.cause
FROM judged
JOIN rows ON rows.key = judged.key AND rows.currency IS NOT DISTINCT FROM judged.currency
WHERE judged.cause IS NOT NULL AND (rows.side = 'own' OR rows.is_counted)
"""
MINOR_TERMS: Final = "by_partner.{name}, by_currency.{name}, getvariable('{name}')"
SHARE_TERMS: Final = """
coalesce(by_partner.line_share, by_currency.line_share, getvariable('line_share'))
    ::DECIMAL(10, 8) * TRY_CAST(abs(pairs.service_amount) AS DECIMAL(28, 8))
"""
# What was erased is in own books still. Where amounts agree, another cause is another break.
INSERT_BREAKS: Final = """
INSERT INTO reconciliation.break_rows
SELECT
    $rule, 'B' || left(sha256(concat_ws('|', $rule, $connection, found.currency, found.key,
        if(found.cause IN ('other partner', 'other month'), found.cause, NULL))), 12),
    $connection, if(hidden(found.partner, found.partner) <> found.partner,
        replace(found.key, found.partner, '[erased]'), hidden(found.key, found.key)),
    hidden(found.partner, found.partner), found.month, found.currency, found.cause, found.side,
    hidden(found.id, found.id), found.quantity, found.amount, found._scan_id, found._page,
    found._row, if(found.side = 'own', ($files::VARCHAR[])[found.file + 1], NULL), NULL
FROM own_found AS found
"""
# Rows of a month. Those without one are in the month of the record that they belong to. What they
# say that is not understood may be any text, also a name.
OF_MONTH: Final = """
SELECT
    {source} AS source, {connection} AS connection, {files}[own.file + 1] AS file, own.row,
    hidden(own.id, own.id) AS id, hidden(own.partner, own.partner) AS partner, own.month,
    own.currency, own.amount, own.quantity, own.unread
FROM {table} AS own
WHERE {is_of_month}
"""
HAS_MONTH: Final = "own.month = $month"
HAS_RECORD: Final = (
    "own.key IN (SELECT service.key FROM temp.{service} AS service WHERE service.month = $month)"
)
INSERT_TOTALS: Final = """
INSERT INTO reconciliation.own_totals
SELECT
    $source, $connection, '{against}',
    {month} AS total_month, months.currency,
    coalesce(sum(months.rows) FILTER (months.side = 'own'), 0),
    sum(months.amount) FILTER (months.side = 'own'),
    coalesce(sum(months.rows) FILTER (months.side = 'service'), 0),
    sum(months.amount) FILTER (months.side = 'service'),
    coalesce(sum(months.amount) FILTER (months.side = 'service'), 0)
        - coalesce(sum(months.amount) FILTER (months.side = 'own'), 0)
FROM own_months AS months
WHERE CASE months.side WHEN 'own' THEN NOT months.is_unread ELSE months.is_counted
    AND (months.month IS NULL OR months.month >= getvariable('own_begin')) END
GROUP BY total_month, months.currency
"""
UNREAD: Final = """
SELECT own.unread AS role, own.sent, own.row, own.file, count(*) OVER () AS rows
FROM {table} AS own
WHERE own.unread IS NOT NULL
ORDER BY own.file, own.row
LIMIT $limit
"""
ROWS: Final = "SELECT count(*) FROM {table}_read"
OWN_TOTALS: Final = """
SELECT
    strftime(own.month, '%Y-%m') AS month, own.currency, count(*) AS rows, sum(own.amount) AS amount
FROM {table} AS own
WHERE own.unread IS NULL
GROUP BY ALL
ORDER BY ALL
"""
# Of both sides: breaks have the digits behind the point that own amounts need.
NO_ROW: Final = "SELECT own.quantity, own.amount FROM {table} AS own WHERE false"
