"""What is proven of the readings that everything else here is made of: the first line of a pack."""

from pipelines.reconciliation.base import Rule

SQL = """
SELECT connection, stream, day, grade, sentence, rows, ended_at, doubt
FROM meta.proofs WHERE in_force ORDER BY connection, stream
"""

RULE = Rule(
    name="completeness",
    question="Was every list read completely?",
    sql=SQL,
    means="What is not proven complete may lack rows: a break of it may be one of the reading.",
    remedy="Where there is a doubt, run `partner-sync sync` again before a bill is disputed.",
    columns={
        "stream": "the list that was read",
        "day": "the day that it was read for",
        "grade": "how much is proven",
        "sentence": "what is proven, in words",
        "rows": "how many rows were read",
        "ended_at": "when the reading ended",
        "doubt": "what has happened since; NULL: nothing",
    },
)
