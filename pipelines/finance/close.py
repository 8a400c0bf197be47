"""Months that are signed off: close one, open it again, list them.

A month is closed as it is published, so that its copy holds what analysts saw.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Final

import duckdb
import sqlalchemy

from pipelines.config.values import read_content
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.text import counted
from pipelines.finance.close_refusals import (
    TIME,
    Refusals,
    find_refusals,
)
from pipelines.finance.closing.journal import JournalBasis, describe_journal
from pipelines.finance.closing.write import Basis, write_copy
from pipelines.finance.inputs import copy_folder, read_closes, read_inputs, standing_closes
from pipelines.finance.mapping import mapping_of
from pipelines.finance.reconcile.close_copy import (
    JOURNAL,
    MAPPING,
    WITH_BALANCES,
    adopt_copy,
    format_of,
    require_intact,
)
from pipelines.finance.reconciled import open_books, open_reconciled
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from pipelines.finance.reports.text import format_amount
from pipelines.metadata.tables import Close
from pipelines.versions.change import change_versions, require_unchanged
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows

STATES: Final = """
SELECT closes.month, closes.number, closes.state, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
"""
OPEN_BREAKS: Final = """
SELECT breaks.currency, count(*) AS breaks, sum(breaks.difference) AS difference
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month AND breaks.state <> 'resolved'
GROUP BY breaks.currency
ORDER BY breaks.currency
"""
IN_QUARANTINE: Final = """
SELECT count(*) FROM quarantine.records AS records WHERE records.stream IN ('usage', 'billing')
"""
SIGNED_BY: Final = ("preparer", "reviewer", "note")
UNKNOWN: Final = {"state": None, "changed_records": None, "net_difference": None}


def close_month(session: Stores, month: date, preparer: str, reviewer: str, note: str = "") -> str:
    """Copy a month of the published version and record who signed it off; return a sentence.

    `month` is its first day. The same command once more, as after a kill, finds its close and
    changes nothing. Raises ConfigurationError where that is not allowed, StorageFailed;
    nothing is written then.
    """
    with change_versions(session):
        mapping = read_content(session.home.mapping_file)
        with open_books(session) as (version, db):
            require_unchanged(session.metadata, version)
            close = Close(
                month=month,
                number=_next_number(session, month),
                version=version.number,
                note=note,
                preparer=preparer.strip(),
                reviewer=reviewer.strip(),
                closed_at=session.clock.utc_now(),
                manifest_sha256="",
            )
            sentence = _closed_before(session, close, db)
            if sentence:
                return sentence
            refusals = chain(_one_person(close), find_refusals(session, month, version, db))
            for why, remedy in refusals:  # the first one counts
                text = f"{month:%Y-%m} cannot be closed: {why.rstrip('.')}."
                raise ConfigurationError(f"{text} Nothing was written.", remedy)
            still_open = _still_open(db, month)
            folder = _copy(session, close, db, mapping)
        # The copy is whole before its close is recorded. After a kill in between, the same command
        # finds the copy.
        with session.metadata.transaction() as rows:
            rows.add(close)
    return (
        f"{month:%Y-%m} is closed as published in version {version.number}. Its copy is {folder}. "
        f"The SHA-256 of its manifest is {close.manifest_sha256}. {still_open} "
        f"{describe_journal(folder)}"
    )


def _next_number(session: Stores, month: date) -> int:
    """Return the number of the next close of a month, which counts from 1."""
    numbers = [close.number for close in read_closes(session).values() if close.month == month]
    return max(numbers, default=0) + 1


def _still_open(db: duckdb.DuckDBPyConnection, month: date) -> str:
    """Return which breaks of a month are open, and how many records are in quarantine."""
    breaks = []
    for row in fetch_rows(db, OPEN_BREAKS, {"month": month}):
        currency = row["currency"]
        amount = format_amount(row["difference"], currency, signed=True)
        breaks.append(f"{counted(row['breaks'], 'break')} of {currency or 'no currency'} {amount}")
    text = f"Still open: {', '.join(breaks)}." if breaks else "No break of it is open."
    ((in_quarantine,),) = db.execute(IN_QUARANTINE).fetchall()
    if in_quarantine:
        text += f" Records in quarantine, which amounts may lack: {in_quarantine:,}."
    return text


def _closed_before(session: Stores, close: Close, db: duckdb.DuckDBPyConnection) -> str:
    """Return a sentence about the same close, if there is one that still holds; else nothing.

    The command that made it may have been killed in the build behind it. Where records of the month
    changed since, the month has to be reopened first.
    """
    with suppress(duckdb.CatalogException):  # nothing is reconciled
        for month, _number, state, *_ in db.execute(STATES).fetchall():
            if (month, state) == (close.month, "outdated"):
                return ""
    for folder, before in standing_closes(session).items():
        is_signed_alike = all(getattr(before, name) == getattr(close, name) for name in SIGNED_BY)
        if is_signed_alike and before.month == close.month:
            require_intact(folder, before)
            return (
                f"{before.month:%Y-%m} is closed already: {before.preparer} and {before.reviewer} "
                f"closed it at {before.closed_at:{TIME}}, as published in version "
                f"{before.version}. Its copy is {folder}. The SHA-256 of its manifest is "
                f"{before.manifest_sha256}."
            )
    return ""


def _copy(session: Stores, close: Close, db: duckdb.DuckDBPyConnection, mapping: bytes) -> Path:
    """Write the copy of a month, or take the one that a killed command wrote; return its folder.

    A folder of a close that is not known is kept: the metadata database may be older than it.
    """
    folder = copy_folder(session, close.month, close.number)
    while folder.exists():
        if _is_of(folder, mapping) and adopt_copy(folder, close):
            return folder
        close.number += 1
        folder = copy_folder(session, close.month, close.number)
    erased = read_inputs(session).erased
    page = render_report(read_figures_of_books(session, with_names=False))
    journal = _journal(session, close, mapping, erased)
    basis = Basis(mapping, _previous(session, close.month), erased, page, journal)
    close.manifest_sha256 = write_copy(db, close, folder, basis, session.warehouse.store)
    return folder


def _previous(session: Stores, month: date) -> Path | None:
    """Return the copy of the last month before that is closed, if it has closing balances."""
    last = None
    for folder, close in standing_closes(session).items():  # in the order of months
        if close.month < month:
            last = folder
    if last is None or format_of(last) < WITH_BALANCES:
        return None
    return last


def _journal(
    session: Stores, close: Close, mapping: bytes, erased: Sequence[str]
) -> JournalBasis | None:
    """Return what the journal of a close rests on; None if the mapping has no accounts."""
    terms = mapping_of(mapping, session.home.mapping_file)
    if terms is None or terms.accounts is None:
        return None
    earlier = None
    for folder, before in read_closes(session).items():  # in the order of numbers
        if before.month == close.month and (folder / JOURNAL).exists():
            require_intact(folder, before)
            earlier = folder / JOURNAL
    return JournalBasis(terms.accounts, earlier, erased)


def _is_of(folder: Path, mapping: bytes) -> bool:
    """Return whether a copy was written with this mapping; another one reads other figures."""
    try:
        return (folder / MAPPING).read_bytes() == mapping
    except OSError:
        return False


def _one_person(close: Close) -> Refusals:
    people = {close.preparer.casefold(), close.reviewer.casefold()}
    if len(people) == 1 or "" in people:
        yield "preparer and reviewer must be two people", "Name them: --preparer and --reviewer."


def reopen_month(session: Stores, month: date, person: str, reason: str) -> str:
    """Record that a month is open again; its copy stays. Raises ConfigurationError."""
    with change_versions(session), session.metadata.transaction() as rows:
        query = sqlalchemy.select(Close).where(Close.month == month, Close.reopened_at.is_(None))
        close = rows.scalar(query)
        why = ""
        if close is None:
            why = "it is not closed"
        elif not reason.strip():
            why = "a reason is needed"
        if close is None or why:
            raise ConfigurationError(
                f"{month:%Y-%m} cannot be reopened: {why}. Nothing was changed.",
                "Run `partner-sync close list`, then `partner-sync close reopen` with --reason.",
            )
        close.reopened_at = session.clock.utc_now()
        close.reopened_by = person
        close.reopened_reason = reason
    return f"{month:%Y-%m} is open again. Copy {close.number:03} stays as it was signed off."


def list_closes(session: Stores) -> list[Row]:
    """Return every close with what the published version says of it.

    `problem` says why a month is not compared with its copy, or that the copy is damaged.
    """
    states: dict[tuple[date, int], Row] = {}
    problem = "The published books do not show it yet. Run `partner-sync reconcile`."
    try:
        with open_reconciled(session, "closes") as (_version, db):
            for row in fetch_rows(db, STATES):
                states[row.pop("month"), row.pop("number")] = row
    except PartnerSyncError as error:
        problem = f"{error} {error.remedy}".strip()
    rows = []
    for folder, close in read_closes(session).items():
        state = states.get((close.month, close.number))
        row = asdict(close)
        row["month"] = f"{close.month:%Y-%m}"
        row.update(state or UNKNOWN)
        if close.reopened_at:
            row["state"] = "reopened"
        row["problem"] = _damage(folder, close) or (None if state else problem)
        rows.append(row)
    return rows


def _damage(folder: Path, close: Close) -> str | None:
    """Return why a copy is not what was signed off; None if it is. Reads it whole."""
    try:
        require_intact(folder, close)
    except PartnerSyncError as error:
        return f"{error} {error.remedy}"
    return None
