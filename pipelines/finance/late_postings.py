"""Corrections that were posted to a month after its copy was prepared.

A correction is posted to the first open month, and a prepared month is open. If the month were
closed with a copy that lacks it, the correction would be in no journal: the next month has others.
"""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
from sqlalchemy import select

from pipelines.core.text import counted, quote_text
from pipelines.metadata.tables import Close, CorrectionRow
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import SETTINGS

# Without identifiers, which `erase` takes out of what is remembered and not out of a copy.
IN_COPY: Final = """
SELECT
    posted.month, posted.number, posted.side, posted.connection, posted.currency, posted.difference
FROM read_parquet({file}) AS posted
"""


def why_late(stores: Stores, close: Close, folder: Path) -> str:
    """Return that the copy of a close has other corrections than were posted to its month.

    Empty if it has the same. Raises duckdb.Error.
    """
    posted = _posted(stores, close)
    query = IN_COPY.format(file=quote_text(str(folder / "corrections.parquet")))
    with duckdb.connect(config=SETTINGS) as db:
        copied = Counter(db.execute(query).fetchall())
    other = (posted - copied) + (copied - posted)
    if not other:
        return ""
    number = counted(other.total(), "correction")
    return (
        f"since its copy was prepared, {number} of earlier months changed that no journal would "
        "have. Run `partner-sync close prepare` again"
    )


def _posted(stores: Stores, close: Close) -> Counter[tuple[Any, ...]]:
    """Return what is posted to the month of a close, of its connections."""
    query = select(CorrectionRow).where(
        CorrectionRow.posted_to == close.month, CorrectionRow.undone_at.is_(None)
    )
    posted = Counter[tuple[Any, ...]]()
    with stores.metadata.transaction() as session:
        for row in session.scalars(query):
            if close.connections is None or row.connection in close.connections:
                amount = None if row.difference is None else Decimal(row.difference)
                key = (row.month, row.number, row.side, row.connection, row.currency, amount)
                posted[key] += 1
    return posted
