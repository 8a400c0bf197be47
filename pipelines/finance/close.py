"""Months that are signed off: close one, open it again, list them.

Not here: how a month is copied (freeze), how another user approves it (approvals).
"""

import os
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Final

import sqlalchemy

from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.person import name_of
from pipelines.finance.approvals import why_not_evident
from pipelines.finance.freeze import freeze_month, read_states
from pipelines.finance.inbox import open_inbox
from pipelines.finance.inputs import read_copies
from pipelines.finance.late_postings import why_late
from pipelines.finance.reconcile.close_copy import require_intact, why_otherwise
from pipelines.finance.reconciled import open_reconciled
from pipelines.finance.signing import Signing
from pipelines.metadata.tables import Close
from pipelines.versions.change import change_versions
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

RESTORE: Final = (
    "Restore the file from a backup with its owner, or reopen the month and close it again."
)
NOTHING_SAID: Final = Signing()
UNKNOWN: Final = {"state": None, "changed_records": None, "net_difference": None}


def close_month(
    stores: Stores, month: date, preparer: str, reviewer: str, said: Signing = NOTHING_SAID
) -> str:
    """Close a month with the names of two people, as somebody typed them; return a sentence.

    As `freeze_month` does. Raises ConfigurationError also where the settings ask for approvals.
    """
    if stores.settings.approval == "two":
        raise ConfigurationError(
            f"{month:%Y-%m} cannot be closed by one user: setting approval is two. Nothing was "
            "written.",
            "Run `partner-sync close prepare`; another user runs `partner-sync close approve`.",
        )
    signing = replace(
        said, preparer=preparer.strip(), reviewer=reviewer.strip(), approval="declared"
    )
    return freeze_month(stores, month, signing)


def close_alone(stores: Stores, month: date, said: Signing) -> str:
    """Close a month as the user who runs the command, who is the only person; return a sentence.

    As `freeze_month` does.
    """
    return freeze_month(stores, month, _signed_here(said, "one"))


def prepare_close(stores: Stores, month: date, said: Signing) -> str:
    """Freeze the copy of a month, which another user approves; return a sentence.

    As `freeze_month` does.
    """
    if stores.settings.metadata_url is not None and not stores.settings.approvers:
        raise ConfigurationError(
            f"{month:%Y-%m} cannot be prepared: setting approvers names nobody, and on a server "
            "nobody can see which users are one person. Nothing was written.",
            "Name the users of the PostgreSQL server who may approve in approvers, in "
            "settings.toml.",
        )
    if stores.settings.metadata_url is None:
        open_inbox(stores.home)
    return freeze_month(stores, month, _signed_here(said, "two"))


def _signed_here(said: Signing, approval: str) -> Signing:
    """Return what is said with the user who runs the command as the preparer."""
    return replace(said, preparer=name_of(os.getuid()), reviewer="", approval=approval)


def reopen_month(stores: Stores, month: date, person: str, reason: str) -> str:
    """Record that a month is open again; its copy stays. Raises ConfigurationError."""
    with change_versions(stores), stores.metadata.transaction() as session:
        query = sqlalchemy.select(Close).where(
            Close.month == month, Close.reopened_at.is_(None), Close.state == "closed"
        )
        close = session.scalar(query)
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
        close.reopened_at = stores.clock.utc_now()
        close.reopened_by = person
        close.reopened_reason = reason
    return f"{month:%Y-%m} is open again. Copy {close.number:03} stays as it was signed off."


def list_closes(stores: Stores) -> list[Row]:
    """Return every close with what the published version says of it.

    `problem` says why a month is not compared with its copy, or that the copy is damaged.
    """
    states: dict[tuple[date, int], Row] = {}
    problem = "The published books do not show it yet. Run `partner-sync reconcile`."
    try:
        with open_reconciled(stores, "closes") as (_version, db):
            for row in read_states(db):
                states[row.pop("month"), row.pop("number")] = row
    except PartnerSyncError as error:
        problem = f"{error} {error.remedy}".strip()
    rows = []
    for folder, close in read_copies(stores).items():
        state = states.get((close.month, close.number))
        row = asdict(close)
        row["month"] = f"{close.month:%Y-%m}"
        row["connections"] = row.pop("chosen_connections")
        if close.state == "closed":
            row.update(state or UNKNOWN)
        else:  # the books do not have it
            row.update(UNKNOWN, state=close.state)
        if close.reopened_at:
            row["state"] = "reopened"
        is_shown = state or close.state != "closed"
        row["problem"] = _problem(stores, folder, close) or (None if is_shown else problem)
        rows.append(row)
    return rows


def _problem(stores: Stores, folder: Path, close: Close) -> str | None:
    """Return why a copy is not what was signed off, or cannot be; None if it is. Reads it whole."""
    try:
        require_intact(folder, close)
    except PartnerSyncError as error:
        return f"{error} {error.remedy}"
    otherwise = why_otherwise(folder, close)
    if otherwise:
        return f"{otherwise} What was signed is in the manifest."
    evidence = why_not_evident(stores, close)
    if evidence:
        return f"{evidence} Nobody can prove who approved {close.month:%Y-%m}. {RESTORE}"
    if close.state == "prepared":
        try:
            late = why_late(stores, close, folder)
        except PartnerSyncError as error:
            return f"{error} {error.remedy}"
        if late:
            return f"{close.month:%Y-%m} ({close.number:03}) cannot be approved: {late}."
    return None
