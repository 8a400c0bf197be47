"""The published files on disk, and the link that names the one that analysts open.

A file appears whole: written under another name, verified, made durable and read-only, renamed, and
only then named by the link. Here: files. Not here: what is published, and when (publish).
"""

import os
import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from pipelines.errors import StorageFailed
from pipelines.settings import Home
from pipelines.state.versions import Version


def name(number: int) -> str:
    """Return the name of a version's file."""
    return f"warehouse.v{number:08}.duckdb"


def files(home: Home) -> dict[int, Path]:
    """Return the published files by their version, the oldest first."""
    found = sorted(home.published.glob("warehouse.v*.duckdb"))
    numbered = [(re.fullmatch(r"warehouse\.v(\d{8,})\.duckdb", file.name), file) for file in found]
    return {int(match[1]): file for match, file in numbered if match}


def leads_to(home: Home, version: Version) -> bool:
    """Tell whether the link leads to a version's file."""
    return home.link.is_file() and home.link.resolve().name == version.file


def put(home: Home, source: Path, file: Path, verify: Callable[[Path], None]) -> None:
    """Put a copy of the source under the file's name; `verify` is asked before it gets it.

    Raises StorageFailed where the disk does not take it. What was not finished takes no room.
    """
    sweep(home)
    part = file.with_suffix(".duckdb.part")
    try:
        shutil.copyfile(source, part)
        verify(part)
        _settle(part, file)
    except OSError as error:
        raise StorageFailed(
            f"{file} cannot be written: {error.strerror}. What analysts open is as it was, and "
            f"what was read is folded: make room for {source.stat().st_size / 1e6:,.0f} MB, then "
            "run `partner-sync publish`."
        ) from None
    finally:
        part.unlink(missing_ok=True)


def point(home: Home, file: Path) -> None:
    """Swap the link in one step: there is no moment without a warehouse."""
    fresh = home.link.with_suffix(".link")
    try:
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(file.relative_to(home.root))
        fresh.replace(home.link)
        fsync(home.root)
    except OSError as error:
        raise StorageFailed(
            f"{home.link} cannot be set to {file.name}: {error.strerror}. It leads where it led; "
            "make room, then run `partner-sync publish`."
        ) from None


def prune(home: Home, keep: int) -> None:
    """Remove all but the newest files; who has one open goes on reading it."""
    for file in list(files(home).values())[:-keep]:
        file.unlink()


def keep_only(home: Home, numbers: Collection[int]) -> list[str]:
    """Remove all files but these; return the names of those removed."""
    gone = [file for number, file in files(home).items() if number not in numbers]
    for file in gone:
        file.unlink()
    sweep(home)
    fsync(home.published)
    return [file.name for file in gone]


def sweep(home: Home) -> None:
    """Remove what a killed publication left; never anything in work/."""
    for pattern in ("*.part", "*.part.wal", "warehouse.v*.duckdb.wal"):
        for file in home.published.glob(pattern):
            file.unlink()


def _settle(part: Path, file: Path) -> None:
    """Make the copy durable, read-only and named."""
    fsync(part)
    part.chmod(0o444)
    part.rename(file)
    fsync(file.parent)


def fsync(path: Path) -> None:
    """Let what was written to a file, or to a folder's list of names, outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
