-- question: Is no usage billed more than once?
-- label: Billed more than once
-- needs: exceptions usage.id billing.line_usage
-- may lack: billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
-- A line that a credit note takes back in full bills nothing: neither first nor again.
-- Where lines beyond the first are not what is billed too much, as after a part of the usage was
-- billed, all rows of the pair are: their difference is what to dispute.
-- The month and the partner are those of the second bill: that is where too much is billed. Lines of a
-- bill without a period may have several months, each a break.
WITH ordered AS (
    SELECT
        rows.*,
        rows.side = 'billing' AND rows.apart IS NULL AND NOT rows.is_credited AS is_line,
        row_number() OVER (
            PARTITION BY rows.connection, rows.key, rows.currency, is_line
            ORDER BY rows.issued_at, rows.number, rows.bill, rows.id
        ) AS place,
        is_line AND place > rows.used_rows AS is_excess
    FROM paired AS rows
    WHERE rows.status = 'billed twice'
), excess AS (
    SELECT
        coalesce(sum(ordered.amount) FILTER (ordered.is_excess) OVER one, 0)
            = ordered.pair_difference AS is_whole,
        ordered.* REPLACE (
            if(is_whole, ordered.partner, arg_max_null(ordered.partner, ordered.place)
                FILTER (ordered.is_line) OVER one) AS partner,
            if(is_whole, ordered.month, arg_max_null(ordered.month, ordered.place)
                FILTER (ordered.is_line) OVER one) AS month,
            if(is_whole, ordered.bill, max_by(ordered.bill, ordered.place)
                FILTER (ordered.is_line) OVER one) AS bill
        ),
        min_by(ordered.bill, ordered.place) FILTER (ordered.is_line) OVER one AS first_bill,
        concat('usage is also on bill ', min_by(coalesce(ordered.number, ordered.bill), ordered.place)
            FILTER (ordered.is_line) OVER one,
            '; a bill has the new ' || max(ordered.unseen) OVER one) AS cause
    FROM ordered
    WINDOW one AS (PARTITION BY ordered.connection, ordered.key, ordered.currency)
    QUALIFY ordered.is_excess OR NOT is_whole
)
SELECT
    excess.*,
    if(rank() OVER (
        PARTITION BY excess.connection, excess.bill, excess.currency
        ORDER BY excess.month DESC, excess.partner
    ) = 1, excess.bill, concat_ws('|', excess.bill, excess.partner, excess.month)) AS subject
FROM excess
