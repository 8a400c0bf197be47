"""Reconciliation within a publication: both sides matched, rules evaluated, reports written.

Here: that all of it is in the very version that analysts open. Not here: what a rule asks
(reconciliation), what a report shows (reports).
"""

from hashlib import sha256

import duckdb

from pipelines import reconciliation, reports
from pipelines.reconciliation import RULES
from pipelines.run.session import Session
from pipelines.settings import mapping
from pipelines.state import breaks, closes
from pipelines.warehouse import corrections, matching, meta
from pipelines.warehouse.database import together
from pipelines.warehouse.frozen import Copies

SCHEMAS = ("reconciliation", "reports")


def tell(session: Session, database: duckdb.DuckDBPyConnection) -> None:
    """Write the schemas `reconciliation` and `reports` anew, in the publication's transaction.

    Neither is there where the setting `reconcile` says so.
    """
    if not session.settings.reconcile:
        together(database, (f"DROP SCHEMA IF EXISTS {each} CASCADE" for each in SCHEMAS))
        return
    given = mapping.load(session.settings.place.config)
    as_of = max(fold.ended_at for fold in meta.held(database).values())
    corrections.tell(database, Copies(session.archive), session.ledger, as_of)
    found = matching.prepare(database, given.mapping, as_of)
    matching.match(database, found)
    reconciliation.evaluate(database, found, RULES, session.ledger)
    reports.write(database)


def digest(session: Session) -> str:
    """Return what tells whether a publication of the same folds would say something else."""
    if not session.settings.reconcile:
        return ""
    given, ledger = mapping.load(session.settings.place.config), session.ledger
    marks = (given.digest, breaks.digest(ledger), closes.digest(ledger))
    return sha256(" ".join(marks).encode()).hexdigest()
