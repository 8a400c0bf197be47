"""Reconciliation within a publication: both sides matched, rules evaluated, reports written.

Here: that all of it is in the very version that analysts open. Not here: what a rule asks
(reconciliation), what a report shows (reports).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

import duckdb

from pipelines import reconciliation, reports
from pipelines.errors import NothingPublished
from pipelines.reconciliation import RULES, Rule
from pipelines.run.session import Session
from pipelines.settings import Home, mapping
from pipelines.state import breaks, closes
from pipelines.warehouse import corrections, matching, meta, published
from pipelines.warehouse.database import exists, together
from pipelines.warehouse.frozen import Copies

SCHEMAS = ("reconciliation", "reports")
UNSAID = "SELECT not_evaluated FROM reconciliation.rules WHERE rule = $rule"
OPEN = """
SELECT count(*) FILTER (NOT artefact), count(*) FILTER (artefact),
       bool_or(severity = 'high' AND NOT artefact)
FROM reconciliation.breaks WHERE rule = $rule AND state <> 'RESOLVED'
"""
SUMS = """
SELECT currency, count(*) AS breaks, sum(difference) AS difference
FROM reconciliation.breaks WHERE rule = $rule AND state <> 'RESOLVED' AND NOT artefact
GROUP BY currency ORDER BY currency
"""


def tell(session: Session, database: duckdb.DuckDBPyConnection) -> None:
    """Write the schemas `reconciliation` and `reports` anew, in the publication's transaction.

    Neither is there where the setting `reconcile` says so.
    """
    if not session.settings.reconcile:
        together(database, (f"DROP SCHEMA IF EXISTS {each} CASCADE" for each in SCHEMAS))
        return
    given = mapping.read(session.settings.place.config)
    if given.fault:
        session.watch.waiting(
            f"{given.fault}. What it maps is not evaluated; the rest is published."
        )
    as_of = max(fold.ended_at for fold in meta.held(database).values())
    corrections.tell(database, Copies(session.archive), session.ledger, as_of)
    found = matching.prepare(database, given.mapping, as_of)
    matching.match(database, found)
    reconciliation.evaluate(database, replace(found, fault=given.fault), RULES, session.ledger)
    reports.write(database)


@dataclass(frozen=True)
class Judged:
    """A rule that finds breaks, as the published file has it: how many are open, and their sums.

    `sums` are by currency, billed less used; artefacts are counted apart and in none of them.
    """

    rule: Rule
    unsaid: str
    breaks: int
    artefacts: int
    grave: bool
    sums: Sequence[Mapping[str, object]]


def judged(home: Home) -> list[Judged]:
    """Return how each rule that finds breaks stands in what is published; none where none does."""
    with suppress(NothingPublished), published.opened(home) as source:
        if exists(source.database, SCHEMAS[0], "rules"):
            return [_judged(source.database, rule) for rule in RULES if rule.severity]
    return []


def _judged(database: duckdb.DuckDBPyConnection, rule: Rule) -> Judged:
    asked = {"rule": rule.name}
    unsaid = database.execute(UNSAID, asked).fetchall()
    breaks, artefacts, grave = database.execute(OPEN, asked).fetchall()[0]
    sums = database.execute(SUMS, asked).to_arrow_table().to_pylist()
    why = unsaid[0][0] if unsaid else "this version was published before there was the rule"
    return Judged(rule, why or "", breaks, artefacts, bool(grave), sums)


def digest(session: Session) -> str:
    """Return what tells whether a publication of the same folds would say something else."""
    if not session.settings.reconcile:
        return ""
    given, ledger = mapping.read(session.settings.place.config), session.ledger
    marks = (given.digest, breaks.digest(ledger), closes.digest(ledger))
    return sha256(" ".join(marks).encode()).hexdigest()
