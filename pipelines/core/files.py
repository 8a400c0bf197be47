"""Files that survive a crash: durable rename, atomic symlinks, private folders."""

import os
from pathlib import Path

from pipelines.core.errors import StorageFailed

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner can read, with its parents. Raises StorageFailed."""
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"Cannot create {path}: {error.strerror}.") from error
    return path


def sync_folder(path: Path) -> None:
    """Make renames and new files in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def durable_rename(source: Path, target: Path) -> None:
    """Rename a file whose content is durable, and make the new name durable."""
    os.rename(source, target)  # noqa: PTH104 - tests count durable steps at os.rename
    sync_folder(target.parent)


def write_durably(path: Path, content: bytes, mode: int = PRIVATE_FILE) -> None:
    """Replace a small file atomically and durably."""
    part = path.with_name(f".{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)  # noqa: PTH105 - as above
    sync_folder(path.parent)


def swap_symlink(link: Path, target: str) -> None:
    """Point a symlink elsewhere in one step; readers see the old target or the new one."""
    part = link.with_name(f".{link.name}.part")
    part.unlink(missing_ok=True)
    os.symlink(target, part)  # noqa: PTH211 - as above
    os.replace(part, link)  # noqa: PTH105 - as above
    sync_folder(link.parent)
