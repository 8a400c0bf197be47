-- What is overbilled on bills that are still to be paid, and of how many breaks.
-- needs: withheld_breaks
SELECT breaks.currency, sum(breaks.amount) AS difference, count(*) AS number
FROM withheld_breaks AS breaks
GROUP BY breaks.currency
ORDER BY breaks.currency
