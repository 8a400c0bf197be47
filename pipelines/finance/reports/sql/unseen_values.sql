-- Values of bills that the mapping does not list; amounts by currency.
SELECT
    unseen.connection, unseen.value, min(unseen.example) AS example,
    sum(unseen.bills)::BIGINT AS bills, bool_and(unseen.is_counted) AS is_counted,
    string_agg(concat_ws(' ', unseen.currency, unseen.amount), ', ' ORDER BY unseen.currency)
        AS amounts
FROM reconciliation.unseen_values AS unseen
GROUP BY unseen.connection, unseen.value
ORDER BY ALL
