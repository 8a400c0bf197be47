"""Files beside the versions: names, copies, and what killed processes left."""

import fcntl
import re
import shutil
from pathlib import Path
from typing import Final

import psutil

NAME: Final = re.compile(r"v(\d{8,})\.duckdb")
LEFTOVERS: Final = (".v*.building*", ".read-*", ".*.spill")
FICLONE: Final = 0x40049409  # Linux: share the blocks of two files (Btrfs, XFS)


def version_file(folder: Path, number: int) -> Path:
    """Return the file of a version."""
    return folder / f"v{number:08}.duckdb"


def version_number(file: Path) -> int | None:
    """Return the number of a version's file; None for any other file."""
    found = NAME.fullmatch(file.name)
    return int(found[1]) if found else None


def unfinished_file(folder: Path, number: int) -> Path:
    """Return the file of a version while it is written."""
    return folder / f".v{number:08}.building"


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's content; share its blocks where the file system can. Raises OSError."""
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            fcntl.ioctl(writer, FICLONE, reader.fileno())
        except OSError:
            shutil.copyfile(source, target)


def delete(file: Path) -> None:
    """Delete a file or folder, if it exists."""
    if file.is_dir():
        shutil.rmtree(file, ignore_errors=True)
    else:
        file.unlink(missing_ok=True)


def delete_leftovers(folder: Path) -> None:
    """Delete what killed processes left. The caller is the only one that builds."""
    for pattern in LEFTOVERS:
        for file in folder.glob(pattern):
            if not _is_spill_of_running_process(file):
                delete(file)


def _is_spill_of_running_process(file: Path) -> bool:
    found = re.search(r"\.(\d+)\.spill$", file.name)
    return found is not None and psutil.pid_exists(int(found[1]))
