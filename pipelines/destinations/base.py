"""What a destination is, and what runs one: a folder that appears whole, or a database.

How a format is written is its own file's; which tables there are is the published file's.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import filelock

from pipelines.errors import ExportFailed, StorageFailed
from pipelines.warehouse.published import Published, Table

PART = ".part-"  # begins the name of a folder that is not whole yet


@dataclass(frozen=True)
class Written:
    """One table as it arrived: its rows, where, and what a person has to know of it."""

    table: str
    rows: int
    place: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parcel:
    """What is to be exported: tables of one published version, into a folder or by a URL's name."""

    source: Published
    tables: Sequence[Table]
    folder: Path
    variable: str


@dataclass(frozen=True)
class Destination:
    """One export target; `files` tells a folder of files from a database.

    `deliver` writes every table of a parcel or raises, and then nothing may be seen of it.
    """

    name: str
    description: str
    deliver: Callable[[Parcel], list[Written]]
    files: bool = True


@dataclass(frozen=True)
class Export:
    """What an export made: where it is, and what of each table."""

    version: str
    place: str
    written: Sequence[Written]


Writer = Callable[[Published, Table, Path], tuple[int, list[str]]]


def one_file_each(ending: str, write: Writer) -> Callable[[Parcel], list[Written]]:
    """Return what delivers a parcel as a file a table, by what writes one and counts its rows."""

    def deliver(parcel: Parcel) -> list[Written]:
        written = []
        for table in parcel.tables:
            file = parcel.folder / f"{table.title}.{ending}"
            rows, notes = write(parcel.source, table, file)
            written.append(Written(table.title, rows, file.name, tuple(notes)))
        return written

    return deliver


def run(destination: Destination, parcel: Parcel, now: datetime) -> Export:
    """Deliver a parcel, whole or not at all; return what was made.

    Files go to `<folder>/<version>.<time>.<format>/`, and the link `<folder>/<format>` leads there.
    Raises ExportFailed or StorageFailed; what was there before then stays.
    """
    version = parcel.source.version
    if not destination.files:
        return Export(version, parcel.variable, destination.deliver(parcel))
    name = f"{version}.{now:%Y%m%dT%H%M%SZ}.{destination.name}"
    link = parcel.folder / destination.name
    with _storage(parcel.folder), _alone(parcel.folder), _whole(parcel.folder / name) as part:
        inside = Parcel(parcel.source, parcel.tables, part, parcel.variable)
        written = destination.deliver(inside)
    with _storage(parcel.folder):
        _point(link, name)
    return Export(version, str(parcel.folder / name), written)


@contextmanager
def _storage(folder: Path) -> Iterator[None]:
    """Say in words what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"the export into {folder} failed: {error.strerror or error}. Earlier exports and the "
            "published file are as they were; make room or name another --out, and export again."
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one export at a time write into a folder, so that what a killed one left can go."""
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    try:
        with filelock.FileLock(folder / ".export.lock", timeout=0):
            for left in folder.glob(f"{PART}*"):
                shutil.rmtree(left)
            yield
    except filelock.Timeout:
        raise ExportFailed(
            f"another export into {folder} is running; run this one again when it is over"
        ) from None


@contextmanager
def _whole(final: Path) -> Iterator[Path]:
    """Yield a folder that gets its name when all that was written into it is on the disk."""
    if final.exists():
        raise ExportFailed(f"{final} was made this very second; run the export again")
    part = Path(tempfile.mkdtemp(prefix=PART, dir=final.parent))
    try:
        yield part
        for file in part.iterdir():
            file.chmod(0o644)
            _fsync(file)
        part.chmod(0o755)
        _fsync(part)
        part.rename(final)
        _fsync(final.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _point(link: Path, name: str) -> None:
    """Let the link lead to a folder beside it, in one step."""
    fresh = link.with_name(f"{PART}{link.name}.link")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    fresh.replace(link)
    _fsync(link.parent)
