"""Reconciliation within a publication: both sides matched, rules evaluated, reports written.

Here: that all of it is in the very version that analysts open. Not here: what a rule asks
(reconciliation), what a report shows (reports).
"""

from collections import defaultdict
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
from pipelines.warehouse.published import Published

SCHEMAS = ("reconciliation", "reports")
UNSAID = "SELECT rule, coalesce(not_evaluated, '') FROM reconciliation.rules"
OPEN = """
SELECT rule, count(*) FILTER (NOT artefact), count(*) FILTER (artefact),
       coalesce(bool_or(severity = 'high' AND NOT artefact), false)
FROM reconciliation.breaks WHERE state <> 'RESOLVED' GROUP BY rule
"""
SUMS = """
SELECT rule, currency, count(*) AS breaks, sum(difference) AS difference
FROM reconciliation.breaks WHERE state <> 'RESOLVED' AND NOT artefact
GROUP BY rule, currency ORDER BY rule, currency
"""
NEWER = "this version was published before there was the rule"


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
    with suppress(NothingPublished):
        return published.kept(home, _judged)
    return []


def _judged(source: Published) -> list[Judged]:
    database = source.database
    if not exists(database, SCHEMAS[0], "rules"):
        return []
    unsaid = dict(database.execute(UNSAID).fetchall())
    counted = {rule: counts for rule, *counts in database.execute(OPEN).fetchall()}
    sums = defaultdict[str, list[Mapping[str, object]]](list)
    for row in database.execute(SUMS).to_arrow_table().to_pylist():
        sums[row.pop("rule")].append(row)
    found = []
    for rule in (each for each in RULES if each.severity):
        count, artefacts, grave = counted.get(rule.name, (0, 0, False))
        why = unsaid.get(rule.name, NEWER)
        found.append(Judged(rule, why, count, artefacts, grave, sums[rule.name]))
    return found


def digest(session: Session) -> str:
    """Return what tells whether a publication of the same folds would say something else."""
    if not session.settings.reconcile:
        return ""
    given, ledger = mapping.read(session.settings.place.config), session.ledger
    marks = (given.digest, breaks.digest(ledger), closes.digest(ledger))
    return sha256(" ".join(marks).encode()).hexdigest()
