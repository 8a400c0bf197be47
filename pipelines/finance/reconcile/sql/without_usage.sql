-- needs: unreferenced_lines
-- What lines bill that name no usage and are in no break, by reason, kind and sign.
SELECT
    lines.connection, lines.partner, lines.month, lines.currency,
    concat(coalesce(lines.reason, 'lines without usage'), ': ' || lines.kind) AS reason,
    lines.kind, sign(lines.amount) AS sign, count(*) AS lines, sum(lines.amount) AS amount
FROM unreferenced_lines AS lines
LEFT JOIN reconciliation.rules AS rules ON rules.rule = 'unreferenced'
WHERE coalesce(lines.reason <> 'unknown partner', NOT rules.evaluated)
GROUP BY ALL
