"""Who is there: a lock file for each process that shares something, held while it lives.

The system drops the lock when a process ends in whatever way, so that a dead one is known at once;
a process id could be somebody else's by then, or another container's.
"""

import fcntl
import os
from pathlib import Path
from uuid import uuid4


class Presence:
    """One member of a folder of lock files; `folder` None is a company of one."""

    def __init__(self, folder: Path | None) -> None:
        self.name = uuid4().hex
        self._folder = folder
        self._held: int | None = None
        if folder is None:
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        # Locked before it has its name: nobody ever finds it and takes it for a dead one's.
        unnamed = folder / f".{self.name}"
        self._held = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX)
        unnamed.rename(folder / self.name)

    def lives(self, name: str) -> bool:
        """Say whether a member lives; a dead one's file is removed."""
        if self._folder is None or name == self.name:
            return name == self.name
        try:
            file = os.open(self._folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        (self._folder / name).unlink(missing_ok=True)
        return False

    def close(self) -> None:
        """Leave."""
        if self._folder is not None:
            (self._folder / self.name).unlink(missing_ok=True)
        self.drop()

    def drop(self) -> None:
        """Let the lock go, as the system does when the process ends."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
