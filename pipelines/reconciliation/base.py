"""What a rule is, and what runs all of them: schema `reconciliation` of the work database.

A rule with a severity returns records of breaks, grouped here by what they are about; one without
informs. A rule whose roles are not mapped is not evaluated, and says so. Not here: the two sides
(warehouse.matching), what people did about a break (state.breaks).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Any

import duckdb
from sqlalchemy import Engine

from pipelines.state import breaks
from pipelines.state.breaks import Finding, Standing
from pipelines.warehouse import breaks as standings
from pipelines.warehouse.database import fill, literal, quoted, together
from pipelines.warehouse.matching import Matching

SCHEMA = "reconciliation"


class Severity(StrEnum):
    """How bad a break is before its age is known."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """Rows of both sides, and the causes of the breaks that a rule finds among them.

    `versions` are those of usage that there ever were.
    """

    words: str
    used: Sequence[Row] = ()
    billed: Sequence[Row] = ()
    payers: Sequence[str] = ("P",)
    versions: Sequence[Row] = ()
    found: Sequence[str] = ()


@dataclass(frozen=True)
class Rule:
    """One question to the two sides; `needs` are the roles without which nobody can answer it.

    `key` among them stands for the roles by which the sides are matched. `absent` are the sides of
    which a break says that something is not there: it is no more certain than their proof.
    With a severity `sql` returns records of breaks: connection, subject, partner, month, currency,
    cause, side, id, amount, quantity, page, row. `tolerance` says in words what is no break.
    """

    name: str
    question: str
    sql: str
    means: str
    remedy: str
    severity: Severity | None = None
    needs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    tolerance: str = "none"
    columns: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


# The example rows that most rules begin with: a used row, and the line of a bill that is of it.
USED: Row = {"id": "u1", "partner": "P", "month": "2026-09-01", "currency": "EUR", "amount": "5.00"}
LINE: Row = {**USED, "id": "b1#0", "bill": "b1", "reference": "u1"}
# The records of both sides of what a rule calls `wrong`: matched keys, each with its cause.
BOTH_SIDES = """
SELECT w.connection, w.key AS subject, w.partner, w.month, w.currency, w.cause, 'usage' AS side,
       u.id, u.amount, u.quantity, u.page, u.row
FROM wrong w JOIN odd_used u USING (connection, key)
UNION ALL
SELECT w.connection, w.key, w.partner, w.month, w.currency, w.cause, 'billing', b.id, b.amount,
       b.quantity, b.page, b.row
FROM wrong w JOIN odd_billed b USING (connection, key)
"""
RECORDS = """
CREATE OR REPLACE TEMP TABLE break_records (
    break_id VARCHAR, side VARCHAR, id VARCHAR, amount {kind}, quantity {kind}, page VARCHAR,
    row INTEGER
)
"""
FOUND = """
CREATE OR REPLACE TEMP TABLE found AS
SELECT 'B' || left(sha256($rule || '|' || connection || '|' || subject), 12) AS break_id, *
FROM ({sql})
"""
BREAKS = """
CREATE OR REPLACE TABLE {table} AS
SELECT break_id, connection, min(partner) AS partner, min(month) AS month,
       min(currency) AS currency, subject, min(cause) AS cause,
       sum(amount) FILTER (side = 'usage') AS used_amount,
       sum(amount) FILTER (side <> 'usage') AS billed_amount,
       CASE WHEN count(amount) > 0 THEN coalesce(billed_amount, 0) - coalesce(used_amount, 0) END
           AS difference,
       count(*) AS rows
FROM found GROUP BY break_id, connection, subject ORDER BY break_id
"""
OWN = {
    "break_id": "what the break is called, the same every night",
    "rule": "the rule that found it",
    "connection": "whose credentials read the records",
    "partner": "the partner's identifier, as the service has it",
    "partner_name": "the partner's name in the list of partners",
    "month": "the first day of the month that the records are of",
    "currency": "ISO 4217 code; amounts of two currencies are never added",
    "subject": "what the break is about: it makes its identifier",
    "cause": "the likely cause",
    "used_amount": "sum of the usage records, NULL where there are none or no amount is mapped",
    "billed_amount": "sum of the billed records, NULL where there are none or none is mapped",
    "difference": "billed less used",
    "rows": "how many records it is about",
    "side": "the list that the record is of",
    "id": "the record's identifier; of a bill's line, bill#place",
    "amount": "the record's amount",
    "quantity": "the record's quantity",
    "page": "the page of the archive that it was read from, by its SHA-256",
    "row": "the row in that page, from 0",
    "question": "what the rule asks",
    "severity": "how bad a break is at first; NULL: it only informs",
    "evaluated": "whether all the roles that it needs are mapped",
    "not_evaluated": "why it could not be evaluated",
    "breaks": "how many breaks it found",
    "means": "what a break of it means",
    "remedy": "what to do",
    "tolerance": "what is no break",
}
RULES = """
CREATE OR REPLACE TABLE reconciliation.rules (
    rule VARCHAR, question VARCHAR, severity VARCHAR, tolerance VARCHAR, evaluated BOOLEAN,
    not_evaluated VARCHAR, breaks BIGINT, means VARCHAR, remedy VARCHAR
)
"""


WORDS = {
    "rules": "every rule, and whether it could be evaluated",
    "breaks": "every break that there ever was: what, since when, how it stands",
    "break_rows": "the records that each break of tonight is about, with their pages",
    "break_aging": "open breaks by rule, severity, currency and age",
}


def evaluate(
    database: duckdb.DuckDBPyConnection, matching: Matching, rules: Sequence[Rule], ledger: Engine
) -> list[Standing]:
    """Write a table for each rule, their list, the breaks and their records; return the breaks.

    What is found goes into the ledger first, which knows since when and what people did; rules
    that only inform come last, since they count breaks.
    """
    kind = _kind(database)
    database.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    database.execute(RECORDS.format(kind=kind))
    database.execute(RULES)
    lacking = {rule.name: matching.lacking(rule.needs) for rule in rules}
    judging = [rule for rule in rules if rule.severity]
    found = {rule.name: _judged(database, rule, lacking[rule.name]) for rule in judging}
    database.execute(f"CREATE OR REPLACE TABLE {SCHEMA}.break_rows AS FROM break_records")
    _enter(database, judging, lacking, found)
    evaluated = {rule.name for rule in judging if not lacking[rule.name]}
    breaks.sight(ledger, list(chain(*found.values())), matching.as_of, evaluated)
    standing = breaks.standing(ledger)
    streams = matching.roles.streams
    absences = [(rule.name, streams[side]) for rule in rules for side in rule.absent]
    standings.tell(database, standing, kind, absences)
    informing = [rule for rule in rules if rule.severity is None]
    for rule in informing:
        sql = _sql(rule, lacking[rule.name])
        database.execute(f"CREATE OR REPLACE TABLE {SCHEMA}.{quoted(rule.name)} AS {sql}")
    _enter(database, informing, lacking, {})
    for table, words in WORDS.items():
        describe(database, table, words, standings.COLUMNS)
    return standing


def describe(
    database: duckdb.DuckDBPyConnection,
    table: str,
    words: str,
    columns: Mapping[str, str] | None = None,
) -> None:
    """Comment on a table of the schema and on its columns."""
    name = f"{SCHEMA}.{quoted(table)}"
    texts = OWN | dict(columns or {})
    there = [column for column, *_ in database.execute(f"DESCRIBE {name}").fetchall()]
    comments = [f"COMMENT ON TABLE {name} IS {literal(words)}"]
    comments += [
        f"COMMENT ON COLUMN {name}.{quoted(column)} IS {literal(texts[column])}" for column in there
    ]
    together(database, comments)


def _judged(database: duckdb.DuckDBPyConnection, rule: Rule, lacking: str) -> list[Finding]:
    """Write the table of a rule that finds breaks, an empty one where it cannot be evaluated."""
    table = f"{SCHEMA}.{quoted(rule.name)}"
    database.execute(FOUND.format(sql=_sql(rule, lacking)), {"rule": rule.name})
    database.execute(BREAKS.format(table=table))
    database.execute(
        "INSERT INTO break_records SELECT break_id, side, id, amount, quantity, page, row "
        "FROM found"
    )
    rows = database.execute(f"FROM {table}").fetchall()
    database.execute("DROP TABLE found")
    return [Finding(break_id, rule.name, *rest) for break_id, *rest in rows]


def _sql(rule: Rule, lacking: str) -> str:
    return f"SELECT * FROM ({rule.sql}) LIMIT 0" if lacking else rule.sql


def _enter(
    database: duckdb.DuckDBPyConnection,
    rules: Sequence[Rule],
    lacking: Mapping[str, str],
    found: Mapping[str, Sequence[Finding]],
) -> None:
    """Enter rules into the list, and say in the comments of their tables what they ask."""
    rows = []
    for rule in rules:
        why = lacking[rule.name]
        count = None if why or rule.name not in found else len(found[rule.name])
        asked = rule.name, rule.question, rule.severity, rule.tolerance
        rows.append((*asked, not why, why or None, count, rule.means, rule.remedy))
        told = f" NOT EVALUATED: {why}" if why else ""
        describe(database, rule.name, f"{rule.question}{told}", rule.columns)
    fill(database, f"{SCHEMA}.rules", rows)


def _kind(database: duckdb.DuckDBPyConnection) -> str:
    """Return the DECIMAL that holds the amounts and quantities of both sides, every digit."""
    kinds = database.execute(
        "DESCRIBE SELECT u.amount AS a, u.quantity AS b, l.amount AS c, l.quantity AS d "
        "FROM used AS u, billed AS l"
    ).fetchall()
    scale = max(int(kind.partition(",")[2].rstrip(")")) for _, kind, *_ in kinds)
    return f"DECIMAL(38, {scale})"
