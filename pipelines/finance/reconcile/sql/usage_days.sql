-- How many records of usage each day has.
SELECT used.connection, used.day, count(*) AS rows
FROM temp.used AS used
GROUP BY ALL
