"""`reconciliation.breaks` and `break_aging`: every break that there ever was, and how it stands.

Severity rises with value and with age. Before a break reaches finance it is tested against the
proof: what was not read completely may only seem to be missing. Not here: what is a break
(reconciliation), what people did (state.breaks).
"""

from collections.abc import Sequence

import duckdb

from pipelines.state.breaks import Standing
from pipelines.state.proof import Grade
from pipelines.warehouse.database import fill

COUNTING = ", ".join(f"'{grade.value}'" for grade in Grade if grade.counts_missing)
STANDING = """
CREATE OR REPLACE TEMP TABLE standing (
    break_id VARCHAR, rule VARCHAR, connection VARCHAR, partner VARCHAR, month DATE,
    currency VARCHAR, subject VARCHAR, cause VARCHAR, used_amount {kind}, billed_amount {kind},
    difference {kind}, rows BIGINT, first_seen TIMESTAMPTZ, last_seen TIMESTAMPTZ,
    gone_at TIMESTAMPTZ, state VARCHAR, owner VARCHAR, note VARCHAR, resolved_by VARCHAR
)
"""
# What a rule takes for absent may only have been missed where its list is not proven complete.
UNPROVEN = """
CREATE OR REPLACE TEMP TABLE unproven AS
SELECT rule, connection, string_agg(stream || ': ' || coalesce(doubt, grade), '; ') AS reason
FROM meta.proofs JOIN absences USING (stream)
WHERE in_force AND (grade NOT IN ({counting}) OR doubt IS NOT NULL) GROUP BY ALL
"""
BREAKS = """
CREATE OR REPLACE TABLE reconciliation.breaks AS
WITH aged AS (
    SELECT s.*, greatest(0, coalesce(s.gone_at, as_of)::DATE - s.first_seen::DATE) AS age_days,
           (list_position(['low', 'medium', 'high'], r.severity)
            + (abs(coalesce(s.difference, 0)) >= material_minor * coalesce(unit, 0.01))::INTEGER
            + (age_days > 7)::INTEGER + (age_days > 30)::INTEGER) AS level
    FROM standing s LEFT JOIN reconciliation.rules r USING (rule) LEFT JOIN units USING (currency)
    CROSS JOIN terms
)
SELECT break_id, rule, CASE WHEN level >= 3 THEN 'high' WHEN level = 2 THEN 'medium' ELSE 'low' END
           AS severity,
       a.connection, a.partner, p.name AS partner_name, month, currency, subject, cause,
       used_amount, billed_amount, difference, rows, first_seen, last_seen, age_days,
       CASE WHEN age_days <= 1 THEN '0-1' WHEN age_days <= 3 THEN '2-3' WHEN age_days <= 7
            THEN '4-7' WHEN age_days <= 30 THEN '8-30' ELSE '>30' END AS bucket,
       state, owner, note, resolved_by, u.reason IS NOT NULL AS artefact,
       u.reason AS artefact_reason
FROM aged a LEFT JOIN unproven u USING (rule, connection) LEFT JOIN (
    SELECT connection, partner, min(name) AS name FROM payers GROUP BY ALL
) p ON (p.connection, p.partner) = (a.connection, a.partner)
ORDER BY state = 'RESOLVED', level DESC, abs(difference) DESC NULLS LAST, break_id
"""
AGING = """
CREATE OR REPLACE TABLE reconciliation.break_aging AS
SELECT rule, severity, currency, bucket, count(*) AS breaks, sum(difference) AS difference
FROM reconciliation.breaks WHERE state <> 'RESOLVED' AND NOT artefact GROUP BY ALL ORDER BY ALL
"""
COLUMNS = {
    "severity": "low, medium or high: the rule's, raised by value (material_minor) and by age",
    "first_seen": "the moment of the data at which it was found first",
    "last_seen": "the moment of the data at which it was found last",
    "age_days": "days from first_seen to the newest data, or to when it was gone",
    "bucket": "its age: 0-1, 2-3, 4-7, 8-30 or >30 days",
    "state": "OPEN, ASSIGNED, PENDING or RESOLVED",
    "owner": "who it is assigned to",
    "note": "what was said about it last",
    "resolved_by": "evidence: it is found no more; else the person who resolved it",
    "artefact": "whether what it misses may only have been missed: the list is not proven complete",
    "artefact_reason": "which list, and what is not proven of it",
    "breaks": "how many open breaks, paging artefacts apart",
    "difference": "billed less used, of all of them; of one currency",
}


def tell(
    database: duckdb.DuckDBPyConnection,
    standings: Sequence[Standing],
    kind: str,
    absences: Sequence[tuple[str, str]],
) -> None:
    """Write the tables; `kind` is the DECIMAL that holds every amount of tonight.

    `absences` are rules, each with a stream of which it says that something is not there.
    """
    database.execute(STANDING.format(kind=_widened(kind, standings)))
    fill(database, "standing", [_row(each) for each in standings])
    database.execute("CREATE OR REPLACE TEMP TABLE absences (rule VARCHAR, stream VARCHAR)")
    fill(database, "absences", absences)
    database.execute(UNPROVEN.format(counting=COUNTING))
    database.execute(BREAKS)
    database.execute(AGING)


def _widened(kind: str, standings: Sequence[Standing]) -> str:
    """Return the kind with as many places as a break has, which another mapping may have found."""
    found = [each.finding for each in standings]
    amounts = [each for one in found for each in (one.used_amount, one.billed_amount)]
    places = [-int(each.as_tuple().exponent) for each in amounts if each is not None]
    return f"DECIMAL(38, {max([int(kind.partition(',')[2].rstrip(')')), *places])})"


def _row(each: Standing) -> list[object]:
    found = vars(each.finding)
    moments = [each.first_seen, each.last_seen, each.gone_at]
    said = [each.owner or None, each.note or None, each.resolved_by or None]
    return [*found.values(), *moments, each.state.value, *said]
