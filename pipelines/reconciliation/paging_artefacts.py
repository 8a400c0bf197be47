"""Records that reading page by page showed more than once: apart, so that nobody disputes them."""

from pipelines.reconciliation.base import Rule

SQL = """
SELECT connection, stream, duplicates, conflicts, ended_at FROM meta.folds
QUALIFY row_number() OVER (PARTITION BY connection, stream ORDER BY number DESC) = 1
ORDER BY connection, stream
"""

RULE = Rule(
    name="paging_artefacts",
    question="How many records did the pages show more than once?",
    sql=SQL,
    means="Pages overlap on purpose, and lists move while they are read: a record that was read "
    "again is one record, its newest reading counts. It is no duplicate of the service's.",
    remedy="Nothing. Ask the service about conflicts: two of its records have the same key.",
    columns={
        "stream": "the list that was read",
        "duplicates": "readings that were merged with a newer one of the same record",
        "conflicts": "rows in quarantine: another row has the same key and other values",
        "ended_at": "when the reading ended",
    },
)
