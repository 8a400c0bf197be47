-- question: Which records have another amount or quantity than they had before?
-- needs: usage.amount billing.amount
-- remedy: Nothing, where both sides changed alike. Otherwise see the breaks of the partner.
SELECT
    before.connection, before.side, before.id, now.partner, now.month, now.currency,
    before.amount AS amount_before, now.amount AS amount_after,
    now.amount - before.amount AS difference, before.quantity AS quantity_before,
    now.quantity AS quantity_after, before._valid_to AS changed_at,
    (now.month + INTERVAL 1 MONTH)::DATE <= before._valid_to::DATE AS after_month
FROM versions AS before
JOIN versions AS now ON now.connection = before.connection AND now.side = before.side
    AND now._key = before._key AND now._valid_from = before._valid_to
WHERE before._end_reason = 'changed' AND (before.amount IS DISTINCT FROM now.amount
    OR before.quantity IS DISTINCT FROM now.quantity)
ORDER BY before._valid_to DESC, before.connection, before.side, before.id
