"""Approvals of closes by another user of the machine.

Here: how a user without any right to the home approves the copy of a month, and how the home takes
that over. Not here: what a month must fulfil (close_refusals), writing the copy (closing).

Who approved is the owner of a file in the inbox: the kernel says so, no variable of the
environment. Anybody may put files there, so nothing in them is trusted: the digest must be the one
in the metadata database, and the owner neither root, nor the home's user, nor the preparer.
"""

import errno
import json
import logging
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec

from pipelines.config.home import Home
from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.core.files import private_folder, share, storing
from pipelines.core.person import name_of
from pipelines.core.text import printable
from pipelines.finance.closing.verify import find_problems
from pipelines.finance.inputs import copy_folder, read_copies
from pipelines.finance.reconcile.close_copy import MANIFEST, require_intact
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores

INBOX_MODE: Final = 0o1733  # anybody adds files; only this user lists them; nobody removes others'
NOTE_MODE: Final = 0o644
LARGEST_NOTE: Final = 10_000  # bytes
NO_FILES: Final = (errno.ELOOP, errno.ENXIO, errno.EACCES)  # a link, a socket, unreadable
NOBODY: Final = (0, 65534)  # root can write any file; what has no user here is of the second
SHOWN_PROBLEMS: Final = 3
FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Note:
    """What a file in the inbox says, and the user who owns it."""

    owner: int
    month: str
    number: int
    manifest_sha256: str


class Written(msgspec.Struct):
    """The content of such a file; `inode` is its own number."""

    month: str
    number: int
    manifest_sha256: str
    inode: int


class Refused(Exception):
    """Says why a file in the inbox is no approval."""


def open_inbox(home: Home) -> None:
    """Create the folder into which other users put approvals. Raises StorageFailed."""
    with storing(home.inbox, "`partner-sync close prepare`"):
        home.inbox.mkdir(exist_ok=True)
        home.inbox.chmod(INBOX_MODE)


def approve_copy(
    month: date, number: int | None = None, home: Home | None = None
) -> dict[str, Any]:
    """Verify a prepared copy and put its digest into the inbox of a home; return what is approved.

    `number`: of the copy; None: the newest. `home`: None for that of the environment. Reads only
    the copy, as the user who runs it: that user needs no right to the home. Raises
    ConfigurationError, ArchiveDamaged.
    """
    if home is None:
        home = Home.from_environment()
    folder = (
        _newest(home, month) if number is None else home.closes / f"{month:%Y-%m}" / f"{number:03}"
    )
    user = os.getuid()
    problems = list[str]()
    try:
        content = (folder / MANIFEST).read_bytes()
        signed = sha256(content).hexdigest()
        manifest = json.loads(content)
        for problem in find_problems(folder, signed):
            problems.append(problem)
    except (OSError, ValueError, KeyError, duckdb.Error) as error:
        if not problems:  # a file that was changed may be unreadable, too
            raise _unreadable(folder, error) from error
    refusal = _why_not_of(manifest, folder)
    refusal = refusal or _why_not_by(user, [*_preparers(manifest), home.root.stat().st_uid])
    if refusal:
        raise ConfigurationError(
            f"The copy {folder} cannot be approved: {refusal}. Nothing was changed.",
            "Another user of the machine approves what `partner-sync close prepare` has written.",
        )
    if problems:
        raise ArchiveDamaged(
            f"The copy {folder} was changed after it was prepared: "
            f"{'; '.join(problems[:SHOWN_PROBLEMS])}. It was not approved.",
            "Let the preparer run `partner-sync close prepare` again.",
        )
    note = {
        "month": manifest["month"],
        "number": manifest["number"],
        "manifest_sha256": signed,
    }
    _put(home, note)
    return {**note, "copy": str(folder), "approver": name_of(user), **_shown(manifest)}


def _newest(home: Home, month: date) -> Path:
    """Return the newest copy of a month. Raises ConfigurationError without any."""
    folder = home.closes / f"{month:%Y-%m}"
    try:
        names = sorted(file.name for file in folder.iterdir() if file.name.isdigit())
    except OSError as error:
        raise _unreadable(folder, error) from error
    if not names:
        raise _unreadable(folder, FileNotFoundError("there is no copy"))
    return folder / names[-1]


def _unreadable(folder: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"The copy {folder} cannot be read: {printable(error)}. Nothing was approved.",
        "Set PARTNER_SYNC_HOME to the home. Let the preparer run `partner-sync close prepare`, "
        "with your group in setting readers.",
    )


def _shown(manifest: dict[str, Any]) -> dict[str, Any]:
    names = ("preparer", "note", "accept_open", "as_of")
    return {**{name: manifest[name] for name in names}, "sums": manifest["sums"]["summary"]}


def _put(home: Home, note: dict[str, Any]) -> None:
    """Write a note into the inbox under a name that nobody can guess; it is whole or not there."""
    name = f"{note['month']}-{note['number']:03}-{secrets.token_hex(8)}.json"
    part = home.inbox / f".{name}"
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, NOTE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), NOTE_MODE)
            # A file that this user wrote for another purpose, and somebody moved, lacks it.
            inode = os.fstat(file.fileno()).st_ino
            file.write(json.dumps({**note, "inode": inode}))
            file.flush()
            os.fsync(file.fileno())
        part.rename(home.inbox / name)
    except OSError as error:
        raise ConfigurationError(
            f"The approval cannot be put into {home.inbox}: {error.strerror}. Nothing was changed.",
            "Let the preparer run `partner-sync close prepare`, which creates the inbox.",
        ) from error


def _why_not_by(user: int, others: list[int | None]) -> str:
    """Return why a user cannot approve what others prepared; empty if this one can."""
    if user in NOBODY:
        return f"{name_of(user)} is nobody in particular: more than one person may write its files"
    if user in others:
        return f"{name_of(user)} prepared it, or owns the home"
    return ""


def _why_not_of(manifest: dict[str, Any], folder: Path) -> str:
    """Return why the copy in a folder cannot be approved, whoever does it; empty if it can."""
    if (manifest["month"], f"{manifest['number']:03}") != (folder.parent.name, folder.name):
        return "its manifest is of another copy"
    if manifest.get("approval") != "two":
        return "it is not waiting for an approval"
    return ""


def _preparers(manifest: dict[str, Any]) -> list[int | None]:
    return [manifest.get("preparer_uid"), manifest.get("preparer_login")]


def take_over(stores: Stores) -> list[str]:
    """Close the months that other users approved; return a sentence for each approval.

    What is no approval is deleted and logged.
    """
    inbox = stores.settings.home.inbox
    try:
        files = sorted(inbox.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("%s cannot be read: %s. No month was closed.", inbox, error.strerror)
        return []
    sentences = []
    for file in files:
        if file.name.startswith("."):
            continue  # it is being written
        try:
            note = _read(file)
            sentences.append(_close(stores, note))
            _keep(stores, file, note)
        except Refused as refusal:
            logger.warning("A file in %s approves nothing, and was deleted: %s.", inbox, refusal)
            with suppress(OSError):
                file.unlink()
        except (OSError, PartnerSyncError) as error:
            # It may be an approval, and may be taken over later.
            logger.warning("A file in %s was not taken over, and stays: %s", inbox, error)
    return sentences


def _read(file: Path) -> Note:
    """Return what a file says that anybody may have made. Raises Refused, and OSError."""
    try:
        descriptor = os.open(file, FLAGS)
    except OSError as error:
        if error.errno in NO_FILES:
            raise Refused("it is no file of its own") from error
        raise
    try:
        about = os.fstat(descriptor)
        # What others may write, they may have written.
        is_own = stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and not about.st_mode & 0o022
        if not is_own:
            raise Refused("it is no file of its own")
        content = os.read(descriptor, LARGEST_NOTE)
    finally:
        os.close(descriptor)
    try:
        found = msgspec.json.decode(content, type=Written)
    except msgspec.DecodeError as error:
        raise Refused("it is no approval") from error
    except RecursionError as error:
        raise Refused("it is no approval") from error
    if found.inode != about.st_ino:
        raise Refused("it was written as another file")
    return Note(about.st_uid, found.month, found.number, found.manifest_sha256)


def _close(stores: Stores, note: Note) -> str:
    """Close the month that a note approves; return a sentence. Raises Refused, PartnerSyncError."""
    approver = name_of(note.owner)
    what = f"{note.month} ({note.number:03}), approved by {approver}"
    copies = read_copies(stores)
    folder = copy_folder(stores, _month_of(note), note.number)
    prepared = copies.get(folder)
    if prepared is None:
        raise Refused(f"{what}: there is no such copy")
    if note.manifest_sha256 != prepared.manifest_sha256:
        raise Refused(f"{what}: the copy has another manifest")
    require_intact(folder, prepared)
    _require_approver(stores, note, folder)
    is_standing = prepared.state == "closed" and prepared.reopened_at is None
    if is_standing and prepared.reviewer == approver:
        return f"{what}, is closed."  # the command that took it over was killed
    is_closed = any(
        each.month == prepared.month and each.state == "closed" and each.reopened_at is None
        for each in copies.values()
    )
    if prepared.state != "prepared" or is_closed:
        raise Refused(f"{what}: the month is closed, or was prepared again since")
    with stores.metadata.transaction() as rows:
        close = rows.get_one(Close, (prepared.month, prepared.number))
        if close.state != "prepared":  # another command was faster
            raise Refused(f"{what}: the month is closed, or was prepared again since")
        close.state = "closed"
        close.reviewer = approver
        close.approved_at = stores.clock.utc_now()
    return f"{what}, is closed."


def _require_approver(stores: Stores, note: Note, folder: Path) -> None:
    """Raise Refused if the owner of a note must not approve the copy in a folder."""
    preparers = _preparers(json.loads((folder / MANIFEST).read_bytes()))
    owner_of_home = stores.settings.home.root.stat().st_uid
    refusal = _why_not_by(note.owner, [*preparers, owner_of_home, os.getuid()])
    approvers = stores.settings.approvers
    if approvers and name_of(note.owner) not in approvers:
        refusal = f"{name_of(note.owner)} is not in setting approvers"
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
    target = folder / f"{note.month}-{note.number:03}.json"
    with storing(target, "`partner-sync close list`"), suppress(FileNotFoundError):
        if target.exists():  # the first one is the evidence
            file.unlink()
        else:
            file.rename(target)
