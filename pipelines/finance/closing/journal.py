"""The journal of a closed month: what a ledger posts of usage that is not billed.

Here: the files with its lines, and what they say as a sentence. Not here: which breaks and
corrections become entries, and why others do not (unbilled), with which accounts (entries), and how
an auditor finds out that they follow from the rows (verify).
"""

from datetime import date
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.text import counted, quote_text
from pipelines.finance.closing.accrual import WRITTEN
from pipelines.finance.closing.entries import JournalBasis, find_entries
from pipelines.finance.reconcile.close_copy import ENTRIES, JOURNAL
from pipelines.finance.reports.text import format_amount
from pipelines.warehouse.duckdb_file import SETTINGS, Row, fetch_rows

NO_ACCOUNTS: Final = "No journal was written: mapping.toml has no [accounts]."
COPY_ENTRIES: Final = """
COPY ({query} ORDER BY period, kind, entry, source = close, source) TO {file} (FORMAT parquet)
"""
COPY_JOURNAL: Final = """
COPY (
    SELECT entries.* EXCLUDE (month, minor_unit, amount, left_out)
    FROM read_parquet({entries}) AS entries
    WHERE entries.debit IS NOT NULL OR entries.credit IS NOT NULL
    ORDER BY entries.period, entries.kind, entries.entry, entries.source = entries.close,
        entries.source, entries.account
) TO {file} (FORMAT csv, HEADER)
"""
NUMBERS: Final = """
SELECT
    count(coalesce(entries.debit, entries.credit)) AS lines,
    count(*) FILTER (entries.kind = 'accrual' AND entries.left_out LIKE 'uncertain%') AS uncertain
FROM read_parquet($file) AS entries
"""


def write_journal(
    db: duckdb.DuckDBPyConnection, folder: Path, close: tuple[date, int], basis: JournalBasis
) -> None:
    """Write the entries of a month, with what is left out and why, and the lines for a ledger.

    `close` is the first day of the month and the number of its copy. Raises duckdb.Error.
    """
    query, bound = find_entries(db, close, basis)
    entries = quote_text(str(folder / ENTRIES))
    db.execute(COPY_ENTRIES.format(query=query, file=entries), bound)
    file = quote_text(str(folder / JOURNAL))
    db.execute(COPY_JOURNAL.format(entries=entries, file=file))


def describe_journal(folder: Path) -> str:
    """Return what the journal in a copy accrues and leaves out, as sentences."""
    if not (folder / JOURNAL).exists():
        return NO_ACCOUNTS
    with duckdb.connect(config=SETTINGS) as db:
        entries = {"file": str(folder / ENTRIES)}
        accrued = [_amount_of(row) for row in fetch_rows(db, WRITTEN, entries)]
        (numbers,) = fetch_rows(db, NUMBERS, entries)
    text = f"{JOURNAL} has {counted(numbers['lines'], 'line')}."
    if accrued:
        text += f" Accrued: {', '.join(accrued)}."
    if numbers["uncertain"]:
        text += f" Left out: {counted(numbers['uncertain'], 'uncertain break')}."
    return text


def _amount_of(row: Row) -> str:
    return f"{row['currency']} {format_amount(row['posted'], row['currency'])}"
