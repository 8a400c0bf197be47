-- The sums of what follows from open breaks for who pays.
-- needs: claim_breaks
SELECT
    breaks.currency, breaks.reason, sum(breaks.difference) AS difference, count(*) AS number
FROM claim_breaks AS breaks
GROUP BY ALL
ORDER BY ALL
