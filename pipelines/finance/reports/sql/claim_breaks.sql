-- What follows from each open break for who pays: more was used than billed (`unbilled`), or more
-- billed than used (`overbilled`). Not clear: a record names an unknown or another partner, another
-- currency or is no longer reported, so that the other side is no open break; or its amount is
-- doubtful.
-- needs: breaks
SELECT
    breaks.break_id, breaks.currency, breaks.difference,
    concat(
        if(breaks.rule IN ('unknown_partner', 'disappeared') OR facts.doubt IS NOT NULL
            OR breaks.difference IS NULL OR breaks.cause IN (
                'other partner', 'other currency', 'no currency', 'usage of another partner'
            ), 'unclear ', ''),
        if(breaks.difference < 0, 'unbilled', 'overbilled')
    ) AS reason
FROM breaks
JOIN reconciliation.breaks AS facts USING (break_id)
WHERE breaks.outcome = 'open' AND breaks.own_source IS NULL
