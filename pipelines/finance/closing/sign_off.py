"""The last sheet of a working paper: who signed what, a line for each.

Also which breaks were open then, as the report says of a signed month.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.finance.closing.cells import Sheet
from pipelines.finance.reports.text import format_amount
from pipelines.warehouse.duckdb_file import SETTINGS, Row

# What a reader sees; the manifest has the names. Of what has parts, a label begins each line.
LABELS: Final = {
    "number": "copy",
    "preparer": "prepared by",
    "reviewer": "approved by",
    "version": "version of the data",
    "accept_open": "open breaks when this was written",
    "chosen_connections": "closed for",
    "closed_at": "written at (UTC)",
    "preparer_uid": "preparer: number (uid) of the user",
    "preparer_login": "preparer: number (uid) of the user who logged in",
    "preparer_role": "preparer: user of the database server",
    "as_of": "data as of: end of the oldest reading of a list (UTC)",
    "connections": "connections that are compared",
    "scans": "last scan of",
    "previous": "previous copy:",
    "own_books": "own books:",
    "accepted_fees": "why it is accepted: fee",
    "sha256": "SHA-256 of",
}
APPROVALS: Final = {
    "two": "by another user of the machine or of the database server",
    "one": "by one person",
    "declared": "by names that somebody typed",
}
BREAKS: Final = "breaks.parquet"
PARQUET: Final = "read_parquet($file)"
EMPTY: Final = {
    "reviewer": "not when this copy was written: `partner-sync close list` shows who approved it",
    "chosen_connections": "all connections",
    "note": "none",
    "previous": "none: this is the first copy with balances",
}
EMPTY_PART: Final = "the mapping gives no reason"
MATERIALITY: Final = """
SELECT DISTINCT breaks.currency, breaks.materiality
FROM {breaks} AS breaks
WHERE breaks.state <> 'resolved' AND breaks.materiality IS NOT NULL
ORDER BY breaks.currency
"""
# As the page and the other sheets count them: uncertain breaks, and those with own books, are not
# among those of usage and billing.
OPEN: Final = """
SELECT
    CASE WHEN breaks.uncertain IS NOT NULL THEN 'uncertain'
         WHEN breaks.own_source IS NOT NULL THEN 'with own books'
         ELSE 'of usage and billing' END AS kind,
    count(*) AS number, count(*) FILTER (breaks.severity = 'high') AS high
FROM {breaks} AS breaks
WHERE breaks.state <> 'resolved'
GROUP BY ALL
ORDER BY kind
"""


def write_sign_off(sheet: Sheet, signed: Row, db: duckdb.DuckDBPyConnection) -> None:
    """Write what is signed, of a copy whose tables are views in schema `copied`.

    What is empty, and needs no word, has no line. Raises StorageFailed, duckdb.Error.
    """
    head = sheet.begin([f"Sign-off of {signed['month']}"], ["what", "value"])
    amounts = db.execute(MATERIALITY.format(breaks="copied.breaks")).fetchall()
    found = db.execute(OPEN.format(breaks="copied.breaks")).fetchall()
    said = {
        **signed,
        "approval": APPROVALS[signed["approval"]],
        "accept_open": _open_breaks(signed, found, amounts),
        "connections": ", ".join(signed["connections"]),
    }
    for row, (name, value) in enumerate(_lines(said), head + 1):
        sheet.put(row, 0, name)
        sheet.put(row, 1, value)
    sheet.finish(1, 2)


def read_open_breaks(folder: Path, signed: Row) -> str:
    """Return which breaks are open in the copy of a month, and why it is closed with them.

    `signed` has approval, preparer and accept_open of the close. Raises duckdb.Error.
    """
    file = {"file": str(folder / BREAKS)}
    with duckdb.connect(config=SETTINGS) as db:
        amounts = []
        with suppress(duckdb.BinderException):  # copies of earlier releases have none
            amounts = db.execute(MATERIALITY.format(breaks=PARQUET), file).fetchall()
        found = db.execute(OPEN.format(breaks=PARQUET), file).fetchall()
        return _open_breaks(signed, found, amounts)


def _open_breaks(
    signed: Row, breaks: Iterable[tuple[Any, ...]], amounts: Iterable[tuple[Any, ...]]
) -> str:
    """Return why the month is closed with the open breaks that it has.

    `amounts` are the materiality of each of their currencies.
    """
    parts = []
    severe = 0
    for kind, number, high in breaks:
        parts.append(f"{number:,} {kind} ({high:,} above materiality)")
        severe += high
    found = ", ".join(parts) or "none"
    limits = [f"{currency} {format_amount(amount, currency)}" for currency, amount in amounts]
    if limits:
        found += f"; materiality {', '.join(limits)}"
    if signed["accept_open"]:
        return f"{found}; {signed['preparer']} says why: {signed['accept_open']}"
    if not severe:
        return f"{found}; no reason needed"
    if signed["approval"] == "declared":
        return f"{found}; no reason was asked for, as the names were typed and not verified"
    return f"{found}, each with a person and a reason: see sheet breaks"


def _lines(signed: Row) -> Iterator[tuple[str, Any]]:
    """Yield a label and a value for each line; of what has parts, a line for each part."""
    for name, value in signed.items():
        label = LABELS.get(name, name.replace("_", " "))
        if isinstance(value, dict):
            for part, of_part in value.items():
                said = EMPTY_PART if of_part == "" else of_part
                yield f"{label} {part.replace('_', ' ') if name == 'previous' else part}", said
        elif value not in (None, ""):
            yield label, value
        elif name in EMPTY:
            yield label, EMPTY[name]
