-- needs: doubts
-- What is known of each break, whatever people decide about it, however old it is now, and whatever
-- other connections bill: age and severity are in view `breaks`, so that books of connections that
-- did not change need not be made again. Of own books, the difference is what the service has minus
-- what they have. `at_stake` is the amount by which a break is judged.
WITH found AS (
    SELECT
        found.break_id, found.rule, rules.own_source, found.connection, found.subject,
        min(found.partner) AS partner, min(found.month) AS month, found.currency,
        min(found.cause) AS cause,
        sum(found.amount) FILTER (found.side = 'usage') AS used_amount,
        sum(found.amount) FILTER (found.side = 'billing') AS billed_amount,
        -- What disappeared counts nowhere any more.
        CASE WHEN found.rule = 'disappeared' THEN 0
             WHEN rules.own_source IS NOT NULL
                THEN coalesce(billed_amount, 0) + coalesce(used_amount, 0)
                    - coalesce(sum(found.amount) FILTER (found.side = 'own'), 0)
             WHEN count(found.amount) > 0
                THEN coalesce(billed_amount, 0) - coalesce(used_amount, 0) END AS difference,
        coalesce(sum(found.quantity) FILTER (found.side = 'billing'), 0)
            - coalesce(sum(found.quantity) FILTER (found.side = 'usage'), 0) AS more_quantity,
        count(*) AS rows,
        -- Which records they are, in any order.
        bit_xor(md5_number(concat(found.side, '|', found.id)))::VARCHAR AS rows_digest
    FROM reconciliation.break_rows AS found
    LEFT JOIN reconciliation.rules AS rules USING (rule)
    GROUP BY found.break_id, found.rule, rules.own_source, found.connection, found.subject,
        found.currency
), known AS (
    SELECT
        found.*, coalesce(before.first_seen, getvariable('as_of')) AS first_seen,
        -- Now: whenever that is.
        NULL::TIMESTAMPTZ AS last_seen, NULL::TIMESTAMPTZ AS gone_at,
        CASE WHEN before.gone_at IS NULL THEN before.returned_at
             ELSE getvariable('as_of') END AS returned_at
    FROM found
    LEFT JOIN temp.memory_breaks AS before USING (break_id)
    UNION ALL BY NAME
    SELECT
        before.break_id, before.rule, rules.own_source, before.connection, before.subject, before.partner,
        before.month, before.currency, before.cause, before.used_amount, before.billed_amount,
        before.difference, before.rows, before.first_seen,
        if(before.gone_at IS NULL AND rules.evaluated,
            coalesce(getvariable('last_as_of')::TIMESTAMPTZ, before.last_seen), before.last_seen
        ) AS last_seen,
        CASE WHEN rules.evaluated THEN coalesce(before.gone_at, getvariable('as_of'))
             ELSE before.gone_at END AS gone_at,
        before.returned_at
    FROM temp.memory_breaks AS before
    LEFT JOIN reconciliation.rules AS rules USING (rule)
    ANTI JOIN found USING (break_id)
), judged AS (
    SELECT
        known.*,
        -- What is booked to another partner or month is wrong as a whole, whatever the difference.
        CASE WHEN known.rule = 'disappeared'
                THEN abs(coalesce(known.used_amount, known.billed_amount))
             WHEN known.cause IN ('other partner', 'other month')
                THEN greatest(abs(known.difference), abs(known.used_amount),
                    abs(known.billed_amount))
             ELSE abs(known.difference) END AS at_stake,
        -- The list of which a row that is absent may only not have been seen.
        CASE WHEN starts_with(rules.rests_on, 'less ')
                -- The service has less, or nothing.
                THEN if(known.difference < 0 OR coalesce(known.used_amount, known.billed_amount)
                    IS NULL, substr(rules.rests_on, 6), NULL)
             WHEN rules.rests_on <> 'the side that has less' THEN rules.rests_on
             WHEN rules.rests_on IS NULL THEN NULL
             WHEN known.difference < 0 THEN 'billing'
             WHEN getvariable('match_by') <> 'month' THEN NULL
             WHEN known.difference > 0 OR known.more_quantity > 0 THEN 'usage'
             WHEN known.more_quantity < 0 THEN 'billing'
             END AS stream
    FROM known
    LEFT JOIN reconciliation.rules AS rules USING (rule)
), due AS (
    SELECT rows.break_id, max(payments.due_on) AS due_on
    FROM reconciliation.break_rows AS rows
    JOIN temp.payments AS payments USING (connection, _scan_id, _page, _row)
    WHERE rows.side = 'billing' AND payments.due_on IS NOT NULL
    GROUP BY rows.break_id
), explained AS (
    SELECT DISTINCT judged.break_id
    FROM judged
    CROSS JOIN (SELECT DISTINCT doubts.any_partner, doubts.any_currency FROM doubts) AS kinds
    JOIN doubts
        ON doubts.connection = judged.connection AND doubts.side = judged.stream
        AND doubts.any_partner = kinds.any_partner AND doubts.any_currency = kinds.any_currency
        AND doubts.doubt_partner IS NOT DISTINCT FROM if(kinds.any_partner, NULL, judged.partner)
        AND doubts.doubt_currency IS NOT DISTINCT FROM if(kinds.any_currency, NULL, judged.currency)
    WHERE (doubts.amount <= coalesce(judged.at_stake, doubts.amount)
        OR (doubts.no_quantity AND judged.at_stake = 0)) AND (
        getvariable('match_by') = 'usage' OR doubts.any_month
        OR doubts.doubt_month IS NOT DISTINCT FROM judged.month
    )
), lists AS (
    SELECT
        lists.connection, lists.stream, lists.complete AS is_complete,
        lists.ended_at::DATE AS read_on,
        max(lists.ended_at) OVER (PARTITION BY lists.connection)::DATE AS others_read_on
    FROM reconciliation.lists AS lists
    WHERE lists.is_compared AND lists.ended_at IS NOT NULL
)
SELECT
    judged.break_id, judged.rule, judged.own_source, judged.at_stake, judged.connection, judged.partner, partners.name AS partner_name, judged.month,
    judged.currency, judged.subject, judged.cause, judged.used_amount, judged.billed_amount,
    judged.difference, judged.rows, judged.rows_digest, judged.first_seen, judged.last_seen, judged.gone_at,
    judged.returned_at, due.due_on,
    CASE WHEN NOT rules.evaluated THEN concat('its rule is not evaluated: ', rules.reason)
         WHEN judged.stream IS NOT NULL AND lists.stream IS NULL
            THEN judged.stream || ' is not loaded'
         WHEN NOT lists.is_complete THEN concat(lists.stream, ' is not proven complete')
         -- A credit note may not have been seen that takes back what is billed too much.
         WHEN judged.difference > 0 AND judged.rule NOT IN ('disappeared', 'unknown_partner')
            AND judged.billed_amount IS NOT NULL AND NOT bills.is_complete
            THEN 'billing is not proven complete'
         WHEN lists.read_on < (judged.month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days')
            AND judged.month <= lists.others_read_on + INTERVAL 1 MONTH
            AND (judged.rule = 'not_billed' OR lists.read_on + 1 < lists.others_read_on)
            THEN concat(lists.stream, ' was read before the month was due') END AS uncertain,
    CASE WHEN explained.break_id IS NOT NULL
            THEN concat('may be explained by ', judged.stream, ' that cannot be read')
         WHEN rules.evaluated AND rules.reason IS NOT NULL
            THEN 'may be explained by what is not understood' END AS doubt
FROM judged
LEFT JOIN explained USING (break_id)
LEFT JOIN due USING (break_id)
JOIN reconciliation.rules AS rules USING (rule)
LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
LEFT JOIN lists USING (connection, stream)
LEFT JOIN lists AS bills ON bills.connection = judged.connection AND bills.stream = 'billing'
