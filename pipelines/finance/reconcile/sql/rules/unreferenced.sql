-- question: Does every line of a bill name its usage, and do the lines add up to the total?
-- label: Billed without a reference
-- needs: unreferenced_lines usage.id billing.line_usage billing.line_amount
-- may lack: any role
-- remedy: Ask what is billed without usage. Dispute the bill, or accept the fee in `mapping.toml`.
WITH found AS (
    SELECT
        lines.*, 'billing' AS side, lines.bill AS subject, bool_or(lines.is_rest) OVER one AS has_rest,
        bool_and(lines.is_rest) OVER one AS is_only_rest, sum(lines.amount) OVER one AS difference
    FROM unreferenced_lines AS lines
    WHERE lines.reason IS NULL
    WINDOW one AS (PARTITION BY lines.connection, lines.bill, lines.currency)
)
SELECT
    found.*,
    concat(
        CASE WHEN found.is_whole THEN 'bill without lines'
             WHEN NOT found.has_rest THEN 'lines without usage'
             WHEN NOT found.is_only_rest THEN 'lines without usage, and its total differs from its lines'
             WHEN found.difference > 0 THEN 'total above its lines'
             ELSE 'total below its lines' END,
        ', with the new ' || found.unseen
    ) AS cause
FROM found
WHERE found.difference <> 0
