"""What came after the copy of a month was prepared: corrections, other closes, another mapping.

A correction is posted to the first open month, and a prepared month is open. If the month were
closed with a copy that lacks it, the correction would be in no journal: the next month has others.
With two mappings, such as of two time zones, a record may be in two closed months or in none.
"""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
from sqlalchemy import select

from pipelines.core.text import counted, quote_text
from pipelines.finance.inputs import standing_closes
from pipelines.finance.mapping import read_mapping
from pipelines.finance.reconcile.close_copy import (
    MANIFEST,
    MAPPING,
    WITH_BALANCES,
    digest_of,
    format_of,
)
from pipelines.finance.reconcile.closed_rows import has_mapping
from pipelines.metadata.tables import Close, CorrectionRow
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import SETTINGS

# Without identifiers, which `erase` takes out of what is remembered and not out of a copy.
IN_COPY: Final = """
SELECT
    posted.month, posted.number, posted.side, posted.connection, posted.currency, posted.difference
FROM read_parquet({file}) AS posted
"""


def previous_copy(stores: Stores, close: Close) -> Path | None:
    """Return the copy of the last month before that is closed, if it has closing balances.

    It is closed for the same connections: balances of others are not those of this month.
    """
    last = None
    for folder, before in standing_closes(stores).items():  # in the order of months
        is_alike = before.chosen_connections == close.chosen_connections
        if before.month < close.month and is_alike:
            last = folder
    if last is None or format_of(last) < WITH_BALANCES:
        return None
    return last


def why_late(stores: Stores, close: Close, folder: Path) -> str:
    """Return that the copy of a close has other corrections than were posted to its month.

    Or that its opening balances are not those of the month before, or its mapping is another one
    than that of today or of a month that was closed since. Empty if it has the same. Raises
    duckdb.Error, PartnerSyncError.
    """
    why = _why_other_mapping(stores, close, folder)
    if why:
        return why
    try:
        before = previous_copy(stores, close)
    except (OSError, ValueError):
        return "the copy of the month before cannot be read"
    signed_before = digest_of(before / MANIFEST) if before else None
    stated = json.loads((folder / MANIFEST).read_bytes())["previous"] or {}
    if stated.get("manifest_sha256") != signed_before:
        return (
            "since its copy was prepared, a month before was closed or reopened, so its opening "
            "balances are others. Run `partner-sync close prepare` again"
        )
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


def _why_other_mapping(stores: Stores, close: Close, folder: Path) -> str:
    """Return that figures of today, or of a month closed since, have another mapping than a copy.

    `close prepare` compares records with the months that are closed then, by both mappings.
    """
    problem = ""
    if not has_mapping(folder, read_mapping(stores.home.mapping_file)):
        problem = "mapping.toml changed, so its figures are not those of the mapping of today"
    for other, since in standing_closes(stores).items():
        is_later = (since.approved_at or since.closed_at) >= close.closed_at
        if is_later and not has_mapping(folder, read_mapping(other / MAPPING)):
            problem = (
                f"{since.month:%Y-%m} was closed with another mapping, so a record may be in both "
                "months or in none"
            )
    if not problem:
        return ""
    return f"since its copy was prepared, {problem}. Run `partner-sync close prepare` again"


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
