-- Records of closed months that did not change, and are read otherwise than at the sign-off.
SELECT
    lines.month, lines.currency, count(*) AS records, sum(lines.difference) AS difference
FROM reconciliation.read_otherwise AS lines
GROUP BY lines.month, lines.currency
ORDER BY ALL
