"""Copy a home while it is in use: python3 backup.py HOME TARGET [--keep N].

Here: ledger, archive, warehouse, published files, configuration, and Dagster's own records where
they lie in the home. It needs nothing but Python, and the same lock as a fold: what begins to fold
or to publish meanwhile waits. Pages that an earlier backup has are linked, not copied. Not here:
secrets, which are in no home, and the way back (restore.py).
"""

import argparse
import fcntl
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

# The ledger first: whatever it names lies in the archive already.
PARTS = ("state", "archive", "work", "published", "config", "reports", "exports", "dagster")
LINK = "warehouse.duckdb"
PASSING = (".lock", "-wal", "-shm", "-journal", ".pid", ".sock")
UNFINISHED = ".unfinished"
WORK = {"warehouse.duckdb", "warehouse.duckdb.wal"}  # the rest of work/ is thrown away at any time


def main() -> int:
    """Make one backup; return 0, or 1 with words."""
    parser = argparse.ArgumentParser(description="Back up a home while it is in use.")
    parser.add_argument("home", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--keep", type=int, default=0, help="delete all but so many; 0 keeps all")
    asked = parser.parse_args()
    if not (asked.home / "state").is_dir():
        sys.stderr.write(f"{asked.home} is no home: it has no folder state. Nothing was copied.\n")
        return 1
    os.umask(0o077)
    try:
        made = copied(asked.home, asked.target)
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write(f"no backup was made, earlier ones are as they were: {error}\n")
        return 1
    sys.stdout.write(f"{made}\n")
    for old in finished(asked.target)[: -asked.keep or None] if asked.keep > 0 else ():
        shutil.rmtree(old)
    return 0


def finished(target: Path) -> list[Path]:
    """Return the backups that are there, oldest first; one that broke off is none."""
    found = target.iterdir() if target.is_dir() else ()
    return sorted(each for each in found if each.is_dir() and each.suffix != UNFINISHED)


def copied(home: Path, target: Path) -> Path:
    """Copy a home into a folder named by the time; return it."""
    earlier = finished(target)
    name = f"{datetime.now(UTC):%Y-%m-%dT%H%M%S.%fZ}".replace(".", "-")
    made = target / (name + UNFINISHED)
    made.mkdir(parents=True)
    with alone(home):
        for part in PARTS:
            for file in files(home / part):
                copy(file, made / file.relative_to(home), earlier, home)
        if (home / LINK).is_symlink():
            (made / LINK).symlink_to((home / LINK).readlink())
    return made.rename(target / name)


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep every run from folding and publishing; what already does so ends first."""
    with (home / "state" / "warehouse.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def files(folder: Path) -> Iterator[Path]:
    """Yield what is worth keeping of a part of the home."""
    for file in sorted(folder.rglob("*")):
        passing = file.name.endswith(PASSING) or (folder.name == "work" and file.name not in WORK)
        if file.is_file() and not passing:
            yield file


def copy(file: Path, to: Path, earlier: list[Path], home: Path) -> None:
    """Copy a file; a database by SQLite's own means, a page that is unchanged as a link."""
    to.parent.mkdir(parents=True, exist_ok=True)
    relative = file.relative_to(home)
    before = earlier[-1] / relative if earlier else None
    if relative.parts[0] == "archive" and before and same(before, file):
        os.link(before, to)
    elif file.suffix in {".sqlite", ".db"}:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(to)) as backup:
            source.backup(backup)
    else:
        shutil.copy2(file, to)


def same(one: Path, other: Path) -> bool:
    """Tell whether two files are of one size and time; pages are written once, under their hash."""
    if not one.is_file():
        return False
    first, second = one.stat(), other.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)


if __name__ == "__main__":
    sys.exit(main())
