"""Files that survive a crash: durable rename, atomic symlinks, private folders."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.core.errors import StorageFailed

PRIVATE_FILE = 0o600


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


def remove_folder(path: Path) -> None:
    """Delete a folder with all that is in it, if there is one. Raises StorageFailed."""
    with storing(path):
        if path.exists():
            shutil.rmtree(path)


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
    sync_file(target.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a small private file atomically and durably."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(PRIVATE_FILE)
    part.write_bytes(content)
    sync_file(part)
    durable_rename(part, path)


def swap_symlink(link: Path, target: str) -> None:
    """Point a symlink elsewhere in one step; readers see the old target or the new one."""
    part = link.with_name(f".{link.name}.part")
    part.unlink(missing_ok=True)
    os.symlink(target, part)  # noqa: PTH211 - as above
    durable_rename(part, link)
