"""Here: files by which other users of the machine approve closes: what one says, and who owns it.

Who approved is the owner of a file in the inbox: the kernel says so, no variable of the
environment. Anybody may put files there. Not here: which of them close a month (approvals).
"""

import errno
import logging
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pipelines.config.home import Home
from pipelines.core.files import storing
from pipelines.core.person import name_of

INBOX_MODE: Final = 0o1733  # anybody adds files; only this user lists them; nobody removes others'
LARGEST_NOTE: Final = 10_000  # bytes
NO_FILES: Final = (errno.ELOOP, errno.ENXIO, errno.EACCES)  # a link, a socket, unreadable
FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Note:
    """What an approval says, and the user who owns it: of the machine, or of a server (`role`).

    `refusal`: why it counts for nothing, where the server says so.
    """

    owner: int | None
    month: str
    number: int
    manifest_sha256: str
    role: str = ""
    refusal: str = ""

    @property
    def approver(self) -> str:
        """Return the name of the user."""
        return self.role or name_of(self.owner or 0)


class Written(msgspec.Struct):
    """The content of a file in the inbox; `inode` is the number that the file then had."""

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


def waiting_files(inbox: Path) -> list[Path]:
    """Return the files that users have put into the inbox; none where it cannot be read."""
    try:
        files = list(inbox.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("%s cannot be read: %s. No month was closed.", inbox, error.strerror)
        return []
    # One that begins with a point is being written.
    return sorted(file for file in files if not file.name.startswith("."))


def read_note(file: Path, *, is_moved: bool = False) -> Note:
    """Return what a file says that anybody may have made. Raises Refused, and OSError.

    `is_moved`: it was taken over, and may have come from a backup since, as another file.
    """
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
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused("it is no approval") from error
    if found.inode != about.st_ino and not is_moved:
        raise Refused("it was written as another file")
    return Note(about.st_uid, found.month, found.number, found.manifest_sha256)
