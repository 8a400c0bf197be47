"""Approves the copy of a month, as another user of the machine than who prepared it.

Here: how a user without any right to the home verifies a copy and leaves an approval. Not here: how
the home takes that over (approvals).
"""

import json
import os
import secrets
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import ArchiveDamaged, ConfigurationError
from pipelines.core.person import name_of
from pipelines.core.text import printable
from pipelines.finance.approvals import preparers_of, why_not_by
from pipelines.finance.closing.verify import find_problems
from pipelines.finance.database_approvals import Approval, put_approval
from pipelines.finance.reconcile.close_copy import MANIFEST, MAPPING, digest_of

NOTE_MODE: Final = 0o644
SHOWN_PROBLEMS: Final = 3


def approve_copy(
    month: date,
    number: int | None = None,
    manifest_sha256: str = "",
    home: Home | None = None,
    database: str = "",
) -> dict[str, Any]:
    """Verify a prepared copy and put its digest into the inbox of a home; return what is approved.

    `number`: of the copy; `manifest_sha256`: of its manifest, as it was read. One of them is needed
    where the month has several copies. `home`: None for that of the environment. Reads only the
    copy, as the user who runs it: that user needs no right to the home. `database`: variable with
    the URL of the metadata database and the user's own name there, if that is on a server. Raises
    ConfigurationError, ArchiveDamaged.
    """
    if home is None:
        home = Home.from_environment()
    folder = _named(home, month, number, manifest_sha256)
    manifest, signed, problems = _verify(folder)
    user = os.getuid()
    preparer_role = manifest.get("preparer_role")
    refusal = _why_not_of(manifest, folder) or _why_not_there(preparer_role, database)
    if not refusal and not database:
        refusal = why_not_by(user, [*preparers_of(manifest), home.root.stat().st_uid])
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
    approver = name_of(user)
    if database and preparer_role:
        approval = Approval(note["month"], note["number"], signed)
        approver = put_approval(database, approval, preparer_role)
    else:
        _put(home, note)
    return {**note, "copy": str(folder), "approver": approver, **_shown(manifest)}


def _named(home: Home, month: date, number: int | None, manifest_sha256: str) -> Path:
    """Return the copy that is named, or the only one. Raises ConfigurationError."""
    folder = home.closes / f"{month:%Y-%m}"
    try:
        copies = sorted(file for file in folder.iterdir() if file.name.isdigit())
    except OSError as error:
        raise _unreadable(folder, error) from error
    if not copies:
        raise _unreadable(folder, "there is no copy")
    named = []
    for copy in copies:
        is_numbered = number is None or copy.name == f"{number:03}"
        is_manifest = digest_of(copy / MANIFEST) == manifest_sha256.strip().lower()
        if is_numbered and (is_manifest or not manifest_sha256):
            named.append(copy)
    known = ", ".join(copy.name for copy in copies)
    if not named:
        raise ConfigurationError(
            f"No copy of {month:%Y-%m} that you can read has this number and manifest: there are "
            f"{known}. Nothing was approved.",
            "Compare the SHA-256 of manifest.json in the copy that you read.",
        )
    if len(named) > 1:
        raise ConfigurationError(
            f"{month:%Y-%m} has several copies: {known}. Nothing was approved.",
            f"Name the one that you read: --number {int(copies[-1].name)}, or --manifest with the "
            "SHA-256 of its manifest.",
        )
    return named[0]


def _verify(folder: Path) -> tuple[dict[str, Any], str, list[str]]:
    """Return the manifest of a copy, its digest, and what is wrong with the copy.

    Raises ConfigurationError where it cannot be read.
    """
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
    return manifest, signed, problems


def _unreadable(folder: Path, error: object) -> ConfigurationError:
    return ConfigurationError(
        f"The copy {folder} cannot be read: {printable(error)}. Nothing was approved.",
        "Set PARTNER_SYNC_HOME to the home. Let the preparer run `partner-sync close prepare`, "
        "with your group in setting readers. If its files are in a bucket, let the user of the "
        "home run `partner-sync close list` on this machine.",
    )


def _shown(manifest: dict[str, Any]) -> dict[str, Any]:
    names = ("preparer", "note", "accept_open", "as_of")
    shown = {name: manifest[name] for name in names}
    mapping = manifest["sha256"].get(MAPPING)
    return {**shown, "mapping_sha256": mapping, "sums": manifest["sums"]["summary"]}


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


def _why_not_of(manifest: dict[str, Any], folder: Path) -> str:
    """Return why the copy in a folder cannot be approved, whoever does it; empty if it can."""
    if (manifest["month"], f"{manifest['number']:03}") != (folder.parent.name, folder.name):
        return "its manifest is of another copy"
    if manifest.get("approval") != "two":
        return "it is not waiting for an approval"
    return ""


def _why_not_there(preparer_role: str | None, database: str) -> str:
    """Return why an approval does not belong where it would be left; empty if it does."""
    if preparer_role and not database:
        return (
            "a user of the database approves it, who names the variable with its URL in --database"
        )
    if database and not preparer_role:
        return "a user of the machine approves it, without --database"
    return ""
