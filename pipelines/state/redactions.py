"""Pages out of which records were erased: which, what is read in their place, who, when and why.

The archive has the same (archive/redactions): each is evidence for the other. Not here: whose
records they were, which nothing says any more.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, select

from pipelines.state.conflict import insert
from pipelines.state.tables import REDACTIONS


@dataclass(frozen=True)
class Redaction:
    """One page: `new` is read in the place of `old`, with null in the place of its `rows`."""

    old: str
    new: str
    rows: list[int]
    reason: str
    by: str
    at: datetime


def add(engine: Engine, redactions: Iterable[Redaction]) -> None:
    """Record redactions; one that is recorded already stays as it is."""
    with engine.begin() as ledger:
        for each in redactions:
            row = insert(engine, REDACTIONS).values(asdict(each))
            ledger.execute(row.on_conflict_do_nothing())


def every(engine: Engine) -> list[Redaction]:
    """Return all redactions, the oldest first."""
    query = select(*[REDACTIONS.c[name] for name in Redaction.__dataclass_fields__])
    with engine.connect() as ledger:
        return [Redaction(*row) for row in ledger.execute(query.order_by(REDACTIONS.c.at))]
