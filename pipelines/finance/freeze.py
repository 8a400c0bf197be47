"""Freezes a month: writes its copy, and records who signs it.

A month is copied as it is published, so that its copy holds what analysts saw. Here: one close from
its refusals to its row in the metadata database. Not here: who may sign (close, approvals).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import duckdb
import sqlalchemy

from pipelines.config.values import read_content
from pipelines.core.errors import ConfigurationError
from pipelines.core.person import login_id
from pipelines.core.text import counted, is_one_of
from pipelines.finance.approvals import take_over
from pipelines.finance.close_refusals import TIME, find_refusals
from pipelines.finance.closing.entries import JournalBasis
from pipelines.finance.closing.journal import describe_journal
from pipelines.finance.closing.write import Basis, OwnRows, write_copy
from pipelines.finance.database_approvals import home_role
from pipelines.finance.inputs import (
    copy_folder,
    read_closes,
    read_copies,
    read_inputs,
    standing_closes,
)
from pipelines.finance.late_postings import previous_copy
from pipelines.finance.mapping import mapping_of
from pipelines.finance.own_copy import read_own_rows
from pipelines.finance.reconcile.close_copy import JOURNAL, require_intact
from pipelines.finance.reconcile.views import hide_names
from pipelines.finance.reconciled import open_books
from pipelines.finance.report import read_figures_of_books
from pipelines.finance.reports.render import render_report
from pipelines.finance.reports.text import format_amount
from pipelines.finance.signing import Signing, not_assigned, one_person, signers_of
from pipelines.metadata.tables import Close
from pipelines.versions.change import change_versions, require_unchanged
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows
from pipelines.warehouse.version_files import Version

STATES: Final = """
SELECT closes.month, closes.number, closes.state, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
"""
OPEN_BREAKS: Final = """
SELECT
    breaks.currency, count(*) AS breaks, sum(breaks.difference) AS difference,
    breaks.own_source IS NOT NULL AS is_own
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month AND breaks.state <> 'resolved' AND {is_chosen}
GROUP BY breaks.currency, is_own
ORDER BY is_own, breaks.currency
"""
IN_QUARANTINE: Final = """
SELECT count(*) FROM quarantine.records AS records
WHERE records.stream IN ('usage', 'billing') AND {is_chosen}
"""
DONE: Final = {
    "declared": "closed",
    "one": "closed by one person",
    "two": "prepared, and waits for the approval of another user,",
}
SIGNED_BY: Final = (
    "preparer", "reviewer", "note", "approval", "accept_open", "chosen_connections",
)  # fmt: skip
READ: Final = "SELECT DISTINCT loads.connection FROM meta.loads AS loads ORDER BY loads.connection"


def freeze_month(stores: Stores, month: date, signing: Signing) -> str:
    """Copy a month of the published version and record who signed it off; return a sentence.

    `month` is its first day. The same command once more, as after a kill, finds its close and
    changes nothing. Raises ConfigurationError where that is not allowed, StorageFailed;
    nothing is written then.
    """
    take_over(stores)
    with change_versions(stores):
        mapping = read_content(stores.home.mapping_file)
        with open_books(stores) as (version, db):
            require_unchanged(stores.metadata, version)
            close = _new_close(stores, month, signing, version.number)
            _require_known(db, close)
            sentence = _closed_before(stores, close, db)
            if sentence:
                return sentence
            _require_allowed(stores, close, version, db)
            still_open = _still_open(db, close)
            terms = mapping_of(mapping, stores.home.mapping_file)
            own = read_own_rows(stores, db, close, terms)
            folder = _copy(stores, close, db, mapping, own)
        # The copy is whole before its close is recorded. After a kill in between, the folder stays;
        # the next close has its own number, and its own copy of what is published then.
        _record(stores, close)
    return (
        f"{month:%Y-%m} is {DONE[signing.approval]} as published in version {version.number}. "
        f"Its copy is {folder}. The SHA-256 of its manifest is {close.manifest_sha256}. "
        f"{still_open} {describe_journal(folder)}"
    )


def read_states(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return what open books say of each closed month. Raises duckdb.CatalogException."""
    return fetch_rows(db, STATES)


def _new_close(stores: Stores, month: date, signing: Signing, version: int) -> Close:
    return Close(
        month=month,
        number=_next_number(stores, month),
        version=version,
        note=signing.note,
        preparer=signing.preparer,
        reviewer=signing.reviewer,
        closed_at=stores.clock.utc_now(),
        manifest_sha256="",
        state=signing.state,
        approval=signing.approval,
        accept_open=signing.accept_open.strip() or None,
        chosen_connections=",".join(sorted({*signing.connections})) or None,
    )


def _require_allowed(
    stores: Stores, close: Close, version: Version, db: duckdb.DuckDBPyConnection
) -> None:
    """Raise ConfigurationError for the first reason why a month cannot be closed."""
    is_asked = close.approval != "declared" and not close.accept_open
    refusals = chain(
        one_person(close),
        find_refusals(stores, close.month, close.connections, version, db),
        not_assigned(close.month, close.connections, db) if is_asked else (),
    )
    for why, remedy in refusals:
        text = f"{close.month:%Y-%m} cannot be closed: {why.rstrip('.')}."
        raise ConfigurationError(f"{text} Nothing was written.", remedy)


def _record(stores: Stores, close: Close) -> None:
    """Add a close to the metadata database, in place of one that is prepared."""
    with stores.metadata.transaction() as session:
        for before in session.scalars(sqlalchemy.select(Close).where(Close.month == close.month)):
            if before.state == "prepared":
                before.state = "withdrawn"
        session.add(close)


def _require_known(db: duckdb.DuckDBPyConnection, close: Close) -> None:
    """Raise ConfigurationError for a connection that the version has no list of."""
    known = [name for (name,) in db.execute(READ).fetchall()]
    unknown = [name for name in close.connections or () if name not in known]
    if unknown:
        raise ConfigurationError(
            f"{close.month:%Y-%m} cannot be closed for `{', '.join(unknown)}`: the published "
            "version has no such connection. Nothing was written.",
            f"Connections: {', '.join(known)}.",
        )


def _next_number(stores: Stores, month: date) -> int:
    """Return the number of the next close of a month, which counts from 1."""
    numbers = [close.number for close in read_copies(stores).values() if close.month == month]
    return max(numbers, default=0) + 1


def _still_open(db: duckdb.DuckDBPyConnection, close: Close) -> str:
    """Return which breaks of a close are open, and how many records are in quarantine."""
    breaks = []
    query = OPEN_BREAKS.format(is_chosen=is_one_of("breaks.connection", close.connections))
    for row in fetch_rows(db, query, {"month": close.month}):
        currency = row["currency"]
        amount = format_amount(row["difference"], currency, signed=True)
        beside = " with own books" if row["is_own"] else ""
        number = counted(row["breaks"], "break")
        breaks.append(f"{number}{beside} of {currency or 'no currency'} {amount}")
    text = f"Still open: {', '.join(breaks)}." if breaks else "No break of it is open."
    query = IN_QUARANTINE.format(is_chosen=is_one_of("records.connection", close.connections))
    ((in_quarantine,),) = db.execute(query).fetchall()
    if in_quarantine:
        text += f" Records in quarantine, which amounts may lack: {in_quarantine:,}."
    return text


def _closed_before(stores: Stores, close: Close, db: duckdb.DuckDBPyConnection) -> str:
    """Return a sentence about the same close, if there is one that still holds; else nothing.

    The command that made it may have been killed in the build behind it. Where records of the month
    changed since, the month has to be reopened first.
    """
    with suppress(duckdb.CatalogException):  # nothing is reconciled
        for row in read_states(db):
            if (row["month"], row["state"]) == (close.month, "outdated"):
                return ""
    for folder, before in standing_closes(stores).items():
        is_signed_alike = all(getattr(before, name) == getattr(close, name) for name in SIGNED_BY)
        if is_signed_alike and before.month == close.month:
            require_intact(folder, before)
            return (
                f"{before.month:%Y-%m} is closed already: {signers_of(before)} "
                f"closed it at {before.closed_at:{TIME}}, as published in version "
                f"{before.version}. Its copy is {folder}. The SHA-256 of its manifest is "
                f"{before.manifest_sha256}."
            )
    return ""


def _copy(
    stores: Stores,
    close: Close,
    db: duckdb.DuckDBPyConnection,
    mapping: bytes,
    own: OwnRows | None,
) -> Path:
    """Write the copy of a month; return its folder.

    A folder of an unknown close is kept: the metadata database may be older than it. It is not
    reused, because it may lack later decisions and corrections.
    """
    folder = copy_folder(stores, close.month, close.number)
    while folder.exists():
        close.number += 1
        folder = copy_folder(stores, close.month, close.number)
    erased = read_inputs(stores).erased
    hide = partial(hide_names, connections=close.connections)
    figures = read_figures_of_books(stores, prepare=hide)
    # A copy that waits for approval is replaced by this one, or is no part of what is signed here.
    page = render_report(replace(figures, prepared=()))
    journal = _journal(stores, close, mapping, erased)
    basis = Basis(
        mapping=mapping,
        previous=previous_copy(stores, close),
        erased=erased,
        page=page,
        journal=journal,
        own=own,
        readers=stores.settings.readers,
        preparers=(os.getuid(), login_id()),
        preparer_role=home_role(stores) if close.approval == "two" else None,
    )
    close.manifest_sha256 = write_copy(db, close, folder, basis, stores.warehouse.store)
    return folder


def _journal(
    stores: Stores, close: Close, mapping: bytes, erased: Sequence[str]
) -> JournalBasis | None:
    """Return what the journal of a close rests on; None if the mapping has no accounts."""
    terms = mapping_of(mapping, stores.home.mapping_file)
    if terms is None or terms.accounts is None:
        return None
    earlier = None
    for folder, before in read_closes(stores).items():  # in the order of numbers
        if before.month == close.month and (folder / JOURNAL).exists():
            require_intact(folder, before)
            earlier = folder / JOURNAL
    return JournalBasis(terms.accounts, earlier, erased)
