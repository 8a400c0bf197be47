"""The statements of the views `partners`, `used`, `bills` and `billed`, with gaps for expressions.

In their gaps stand the expression of a role by its name (`{amount}`, `{line_amount}`), and what
`_gaps` in normalize makes of several roles (`{apart}`, `{bill_month}`). A record is `record` in all
of them, a line `line`.

Here: which columns each view has, and how rows are joined. Not here: what stands in the gaps, which
depends on the mapping (normalize).
"""

from typing import Final, NamedTuple

PLACE: Final = """
    record._key, record._scan_id, record._page, record._row,
    record._valid_from, record._valid_to, record._end_reason
"""
PARTNERS: Final = """
SELECT
    record._connection AS connection, {id} AS partner, {name} AS name,
    {external_id} AS external_id, {unread} AS unread, {unread_text} AS unread_text,
    {place}
FROM {table} AS record
{joins}
WHERE {holds}
"""
USED: Final = """
WITH parts AS NOT MATERIALIZED (
    SELECT
        record._connection AS connection, {id} AS id, {partner} AS partner,
        {organization} AS organization, {month} AS month, {day} AS day,
        {currency} AS currency, {plan} AS plan, {metric} AS metric, {unit} AS unit,
        {region} AS region,
        {quantity} AS quantity, {price} AS price, {amount} AS amount,
        {recorded} AS recorded_at, {recorded_on} AS recorded_on, {updated} AS updated_at,
        {unread} AS unread, {unread_text} AS unread_text, {place}
    FROM {table} AS record
    {joins}
    WHERE {holds}
)
SELECT parts.*, {key} AS key
FROM parts
"""
# In full: where a record has a field of that name, its alias would be that field.
IS_CREDIT: Final = "coalesce(list_contains({credit_kinds}, {kind_read}), false)"
IS_PAID: Final = "coalesce(list_contains({paid_statuses}, {status_read}), false)"
# Why a bill is set apart; NULL: it counts, or its status cannot be read. A void credit note is no
# credit, and a status of that name does not make one.
APART: Final = """CASE
        WHEN {counted_statuses} <> [] AND NOT {status_fails}
            AND NOT list_contains({counted_statuses}, coalesce({status_read}, 'no status'))
            THEN regexp_replace(
                coalesce({status}, 'no status'), '^credit note$', 'status credit note'
            )
        WHEN {is_credit} THEN 'credit note' END"""
BILLS: Final = """
SELECT
    record._connection AS connection, {id} AS bill, {number} AS number, {partner} AS partner,
    {organization} AS organization, {bill_month} AS month,
    {bill_month_from} AS month_from, {currency} AS currency,
    {issued} AS issued_at, {updated} AS updated_at,
    {is_credit} AS is_credit, {apart} AS apart, {unseen} AS unseen,
    {bill_known_from} AS known_from, {bill_fee} AS fee,
    if({is_credit}, -abs({amount}), {amount}) AS amount,
    {unread} AS unread, {unread_text} AS unread_text, {place}
FROM {table} AS record
{joins} {of_bill}
WHERE {holds}
"""
PAYMENTS: Final = """
SELECT
    record._connection AS connection, {due} AS due_on, {paid} AS paid_on, {is_paid} AS is_paid,
    if({is_credit}, -abs({open}), {open}) AS open_amount,
    if({is_credit}, -abs({tax}), {tax}) AS tax, {place}
FROM {table} AS record
{joins}
WHERE {holds}
"""
# What the lines of a bill do not add up to is a line of its own, so that all of them do. A bill
# with lines and without a total counts nothing, as in `bills`.
BILLED: Final = """
WITH bills AS NOT MATERIALIZED ({bills}), lines AS NOT MATERIALIZED (
    SELECT
        bills.* EXCLUDE (amount, unread, unread_text, fee) {line_dates},
        coalesce({line_fee}, bills.fee) AS fee,
        line._index::VARCHAR AS line, false AS is_whole, {line_usage} AS reference,
        nullif(concat_ws(',', bills.unread, {line_unread}), '') AS unread,
        coalesce({line_unread_text}, bills.unread_text) AS unread_text,
        {line_plan} AS plan, {line_metric} AS metric, {line_unit} AS unit,
        {line_region} AS region, {line_price} AS price,
        if(bills.is_credit, -abs({line_quantity}), {line_quantity}) AS quantity,
        if(bills.is_credit, -abs({line_amount}), {line_amount}) AS amount
    FROM {lines} AS line
    {line_joins}
    JOIN bills ON bills._key = line._parent_key AND bills.connection = line._connection
    {of_line}
    WHERE {line_holds}
), sums AS (
    SELECT lines.connection, lines._key, lines._valid_from, sum(lines.amount) AS amount
    FROM lines
    GROUP BY ALL
), parts AS (
    SELECT lines.*
    FROM lines
    UNION ALL BY NAME
    SELECT
        bills.* REPLACE (
            if(sums._key IS NULL, bills.amount, {total} - coalesce(sums.amount, 0)) AS amount
        ),
        'rest' AS line, sums._key IS NULL AS is_whole, NULL::VARCHAR AS reference
    FROM bills
    LEFT JOIN sums USING (connection, _key, _valid_from)
    WHERE sums._key IS NULL OR {total} <> coalesce(sums.amount, 0)
)
SELECT
    parts.* EXCLUDE (line) REPLACE (if(parts.reference IS NULL, parts.fee, NULL) AS fee),
    concat(parts.bill, '#', parts.line) AS id, {key} AS key
FROM parts
"""
# Of a list that was never loaded, or of lines that no bill has.
NO_TABLE: Final = """(
    SELECT
        NULL::VARCHAR AS _connection, NULL::VARCHAR AS _key, NULL::VARCHAR AS _parent_key,
        NULL::BIGINT AS _index, NULL::VARCHAR AS _scan_id, NULL::INTEGER AS _page,
        NULL::INTEGER AS _row, NULL::TIMESTAMPTZ AS _valid_from, NULL::TIMESTAMPTZ AS _valid_to,
        NULL::VARCHAR AS _end_reason
    WHERE false
)"""
# A line of a version of a bill is one that was there then.
LINE_HELD: Final = """line._valid_from <= bills._valid_from
        AND (line._valid_to IS NULL OR line._valid_to > bills._valid_from)"""
MONTH: Final = "concat_ws('|', parts.partner, parts.month, parts.currency)"


class View(NamedTuple):
    """A view of rows: its list, its statement, and what a row shares with the other side's."""

    side: str
    statement: str
    key: str = ""


VIEWS: Final = {
    "partners": View("partners", PARTNERS),
    # A record without an id belongs to no line, and to no other record without one.
    "used": View("usage", USED, "coalesce(parts.id, concat('?', parts._key))"),
    "bills": View("billing", BILLS),
    "payments": View("billing", PAYMENTS),
    "billed": View("billing", BILLED, "parts.reference"),
}
