"""Here: which approvals of other users close a month, and what is kept as evidence of them.

Not here: how a user approves a copy (approve), files in the inbox (inbox), approvals on a server
(database_approvals), what a month must fulfil (close_refusals).

Nothing in an approval is trusted: the digest must be the one in the metadata database, and the
owner a user of the machine who is neither root, nor the home's user, nor the preparer.
"""

import json
import logging
import os
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

from pipelines.core.errors import LockHeld, PartnerSyncError
from pipelines.core.files import private_folder, share, storing
from pipelines.core.person import is_known, name_of
from pipelines.core.text import printable
from pipelines.finance.database_approvals import read_approvals
from pipelines.finance.inbox import Note, Refused, read_note, waiting_files
from pipelines.finance.inputs import copy_folder, read_copies, standing_closes
from pipelines.finance.late_postings import why_late
from pipelines.finance.reconcile.close_copy import MANIFEST, require_intact
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.tables import Close
from pipelines.versions.change import BUILD
from pipelines.versions.stores import Stores

logger = logging.getLogger(__name__)
# Root can write any file. The second owns what a mount or container cannot say the owner of.
NOBODY: Final = (0, 65534)


def why_not_by(user: int, others: list[int | None]) -> str:
    """Return why a user cannot approve what others prepared; empty if this one can."""
    if user in NOBODY:
        return f"{name_of(user)} is nobody in particular: more than one person may write its files"
    if user in others:
        return f"{name_of(user)} prepared it, or owns the home"
    if not is_known(user):
        # One person has many such numbers: of their containers, say.
        return f"{name_of(user)} is no user of this machine"
    return ""


def preparers_of(manifest: dict[str, Any]) -> list[int | None]:
    """Return the users who prepared the copy of a manifest, and who logged in as another one."""
    return [manifest.get("preparer_uid"), manifest.get("preparer_login")]


def take_over(stores: Stores) -> list[str]:
    """Close the months that other users approved; return a sentence for each approval.

    What is no approval is deleted and logged. No correction is posted meanwhile: if another command
    makes versions or books, approvals wait for the next one. The caller does not hold that lock.
    """
    if stores.settings.metadata_url is not None:
        return _take_over_of_server(stores)
    inbox = stores.settings.home.inbox
    files = waiting_files(inbox)
    if not files:
        return []
    try:
        with hold_lock(stores.metadata.locks, BUILD, timeout_seconds=0):
            return _take_over(stores, files)
    except LockHeld as error:
        logger.warning("Approvals in %s wait for the next command: %s", inbox, error)
        return []


def _take_over(stores: Stores, files: list[Path]) -> list[str]:
    sentences = []
    for file in files:
        try:
            note = read_note(file)
            sentences.append(_close(stores, note))
            _keep(stores, file, note)
        except Refused as refusal:
            text = "A file in %s approves nothing, and was deleted: %s."
            logger.warning(text, file.parent, refusal)
            with suppress(OSError):
                file.unlink()
        except (OSError, PartnerSyncError) as error:
            # It may be an approval, and may be taken over later.
            logger.warning("A file in %s was not taken over, and stays: %s", file.parent, error)
    return sentences


def _take_over_of_server(stores: Stores) -> list[str]:
    """Close the months that other users of the PostgreSQL server approved."""
    waiting = set[str]()
    for close in read_copies(stores).values():
        if close.state == "prepared":
            waiting.add(close.manifest_sha256)
    if not waiting:
        return []
    sentences = []
    try:
        with hold_lock(stores.metadata.locks, BUILD, timeout_seconds=0):
            for note in _notes_of_server(stores):
                if note.manifest_sha256 in waiting:
                    sentences.extend(_sentence(stores, note))
    except PartnerSyncError as error:
        logger.warning("Approvals on the server wait for the next command: %s", error)
    return sentences


def _sentence(stores: Stores, note: Note) -> list[str]:
    """Return that a month was closed; nothing for what is no approval, which is logged."""
    try:
        return [_close(stores, note)]
    except Refused as refusal:
        logger.warning("An approval on the server closes nothing: %s.", refusal)
        return []


def _notes_of_server(stores: Stores) -> list[Note]:
    notes = []
    for found in read_approvals(stores):
        about = found.approval
        note = Note(
            None, about.month, about.number, about.manifest_sha256, found.role, found.refusal
        )
        notes.append(note)
    return notes


def _close(stores: Stores, note: Note) -> str:
    """Close the month that a note approves; return a sentence. Raises Refused, PartnerSyncError."""
    approver = note.approver
    what = f"{note.month} ({note.number:03}), approved by {approver}"
    folder = copy_folder(stores, _month_of(note), note.number)
    prepared = read_copies(stores).get(folder)
    if prepared is None:
        raise Refused(f"{what}: there is no such copy")
    if note.manifest_sha256 != prepared.manifest_sha256:
        raise Refused(f"{what}: the copy has another manifest")
    require_intact(folder, prepared)
    _require_approver(stores, note, folder)
    is_standing = prepared.state == "closed" and prepared.reopened_at is None
    if is_standing and prepared.reviewer == approver:
        return f"{what}, is closed."  # the command that took it over was killed
    closed = {close.month for close in standing_closes(stores).values()}
    if prepared.state != "prepared" or prepared.month in closed:
        raise Refused(f"{what}: the month is closed, or was prepared again since")
    late = why_late(stores, prepared, folder)
    if late:
        raise Refused(f"{what}: {late}")
    with stores.metadata.transaction() as session:
        close = session.get_one(Close, (prepared.month, prepared.number))
        if close.state != "prepared":  # another command was faster
            raise Refused(f"{what}: the month is closed, or was prepared again since")
        close.state = "closed"
        close.reviewer = approver
        close.approved_at = stores.clock.utc_now()
    return f"{what}, is closed."


def _require_approver(stores: Stores, note: Note, folder: Path) -> None:
    """Raise Refused if the owner of a note must not approve the copy in a folder."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    preparer_role = manifest.get("preparer_role")
    if bool(note.role) != bool(preparer_role):
        raise Refused(f"{folder}: it was prepared while the metadata database was another one")
    if note.role and note.role == preparer_role:
        raise Refused(f"{folder}: {note.role} prepared it")
    approvers = stores.settings.approvers
    # Of a server, nobody can see which users are one person: so they are named.
    if (approvers or note.role) and note.approver not in approvers:
        raise Refused(f"{folder}: {note.approver} is not in setting approvers")
    if note.refusal:
        raise Refused(f"{folder}: {note.refusal}")
    if note.owner is not None:
        owner_of_home = stores.settings.home.root.stat().st_uid
        others = [*preparers_of(manifest), owner_of_home, os.getuid()]
        refusal = why_not_by(note.owner, others)
        if refusal:
            raise Refused(f"{folder}: {refusal}")


def _month_of(note: Note) -> date:
    try:
        return date.fromisoformat(f"{note.month}-01")
    except ValueError as error:
        raise Refused(f"`{printable(note.month, 20)}` is no month") from error


def _keep(stores: Stores, file: Path, note: Note) -> None:
    """Move a note to those that were taken over: its owner is the evidence of who approved."""
    home = stores.settings.home
    folder = private_folder(home.approvals)
    share(folder, stores.settings.readers)
    target = _evidence(stores, note.month, note.number)
    with storing(target, "`partner-sync close list`"), suppress(FileNotFoundError):
        if target.exists():  # the first one is the evidence
            file.unlink()
        else:
            file.rename(target)


def why_not_evident(stores: Stores, close: Close) -> str:
    """Return why the approval of a closed month is not to be seen any more; empty if it is.

    What the approver owns is evidence against the user of the home, who could write the row of the
    close, but nothing of another user.
    """
    if close.approval != "two" or close.state != "closed":
        return ""
    folder = copy_folder(stores, close.month, close.number)
    if json.loads((folder / MANIFEST).read_bytes()).get("preparer_role"):
        return _why_not_on_server(stores, close)
    file = _evidence(stores, f"{close.month:%Y-%m}", close.number)
    try:
        note = read_note(file, is_moved=True)
    except OSError as error:
        return f"The approval {file} cannot be read: {error.strerror}."
    except Refused as refusal:
        return f"The approval {file} was changed: {refusal}."
    about = (note.month, note.number, note.manifest_sha256)
    wanted = (f"{close.month:%Y-%m}", close.number, close.manifest_sha256)
    problem = ""
    if about != wanted:
        problem = f"The approval {file} is of another copy."
    elif note.approver != close.reviewer:
        problem = f"The approval {file} is owned by {note.approver}, not by {close.reviewer}."
    return problem


def _why_not_on_server(stores: Stores, close: Close) -> str:
    """Return that the server has no approval of a close any more; empty if it has."""
    for found in read_approvals(stores) if stores.settings.metadata_url else ():
        is_of_close = found.approval.manifest_sha256 == close.manifest_sha256
        if is_of_close and found.role == close.reviewer:
            return ""
    return f"The server has no approval of {close.month:%Y-%m} by {close.reviewer} any more."


def _evidence(stores: Stores, month: str, number: int) -> Path:
    """Return the file of an approval that was taken over."""
    return stores.settings.home.approvals / f"{month}-{number:03}.json"
