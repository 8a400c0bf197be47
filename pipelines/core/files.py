"""Files that survive a crash: durable rename, atomic symlinks, private folders."""

import fcntl
import grp
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.core.errors import ConfigurationError, StorageFailed

PRIVATE_FILE = 0o600
HOLDER = "held"  # the file of a temporary folder by which a process holds it


@contextmanager
def storing(path: Path, command: str = "`partner-sync sync`") -> Iterator[None]:
    """Raise StorageFailed for what the disk refuses; `command` is the one that goes on."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{path} cannot be written: {error.strerror}. What is stored already is kept; analysts "
            "still see the published version.",
            f"Make room or correct the permissions, then run {command}.",
        ) from error


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner can read, with its parents. Raises StorageFailed."""
    with storing(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def share(path: Path, group: str | None) -> None:
    """Let a group of the system read a file, or a folder without what is in it; None: nobody.

    Raises ConfigurationError for a group that is not there, or that this user is not in.
    """
    if group is None:
        return
    mode = path.stat().st_mode & 0o700
    readable = (mode | mode >> 3) & 0o750
    try:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
        path.chmod(readable)
    except (KeyError, OSError) as error:
        raise ConfigurationError(
            f"The group `{group}` of setting readers cannot read {path}: "
            f"{'there is no such group' if isinstance(error, KeyError) else error.strerror}. "
            "Nothing was changed.",
            "Correct readers in settings.toml, or add this user to the group.",
        ) from error


def remove(path: Path) -> None:
    """Delete a file, a symlink, or a folder with all that is in it, if it is there.

    Raises StorageFailed.
    """
    with storing(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Make the content of a file durable; of a folder, its new files and renames."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def durable_rename(source: Path, target: Path) -> None:
    """Rename a file whose content is durable, and make the new name durable."""
    os.rename(source, target)  # noqa: PTH104 - tests count durable steps at os.rename
    # A name is an entry of its folder: without this, a power failure may bring the old one back.
    sync_file(target.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a small private file atomically and durably; of a link, the file behind it.

    Waits for another process that writes the same file.
    """
    # Configuration may be links into a checkout, which would keep the old text.
    with replacing(path.resolve()) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, mode: int = PRIVATE_FILE) -> Iterator[FileIO]:
    """Yield a file to write to, which replaces another one atomically and durably after the block.

    Waits for another process that writes the same file.
    """
    # Beside the file, because a rename is atomic only within one file system.
    part = path.with_name(f".{path.name}.part")
    with claimed(part) as file:
        file.truncate()
        try:
            yield file
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            durable_rename(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Keep other processes of this machine out of the block. Raises StorageFailed."""
    with storing(lock):
        file = lock.open("ab")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(part: Path) -> Iterator[FileIO]:
    """Yield an empty private file that this process alone writes, which `is_left_over` sees."""
    while True:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
        with FileIO(descriptor, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_named(part, descriptor):
                os.fchmod(descriptor, PRIVATE_FILE)
                yield file
                return


def _is_named(path: Path, descriptor: int) -> bool:
    """Return whether an open file still has a name: who held it may have renamed or removed it."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def is_left_over(part: Path) -> bool:
    """Return whether no living process holds a file, or a folder (`held_folder`), that it made.

    What is neither, or is gone meanwhile, is held by nobody. What another user made may be held.
    """
    with suppress(FileNotFoundError):
        file = part / HOLDER if part.is_dir() else part
        if part.is_symlink() or not file.is_file():
            return True
        try:
            with file.open("rb") as opened:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
    return True


@contextmanager
def held_folder(parent: Path) -> Iterator[Path]:
    """Make a temporary folder that this process holds until it ends, or dies."""
    # A program that was stopped may still write into it.
    with (
        TemporaryDirectory(
            prefix=".", suffix=".part", dir=parent, ignore_cleanup_errors=True
        ) as name,
        (Path(name) / HOLDER).open("wb") as file,
    ):
        fcntl.flock(file, fcntl.LOCK_EX)
        yield Path(name)


def swap_symlink(link: Path, target: str) -> None:
    """Point a symlink elsewhere in one step; readers see the old target or the new one."""
    # A symlink cannot be changed. A new one is made and takes the name.
    part = link.with_name(f".{link.name}.part")
    part.unlink(missing_ok=True)
    os.symlink(target, part)  # noqa: PTH211 - as above
    durable_rename(part, link)
