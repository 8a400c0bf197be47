"""Publishing: a verified copy of the work database, swapped in under one link.

Analysts open `warehouse.duckdb`; whoever has an older version open keeps reading that one. A copy
that was killed half way is swept by the next publication.
"""

import os
import shutil
from hashlib import file_digest
from pathlib import Path

import duckdb
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import PublicationFailed
from pipelines.settings import Home
from pipelines.state import versions
from pipelines.state.versions import Version
from pipelines.warehouse import database, interface, meta, proofs
from pipelines.warehouse.database import Work


def publish(work: Work, ledger: Engine, run: str, keep: int, clock: Clock) -> Version | None:
    """Publish what the work database holds; return the version that analysts open now.

    What is published already is not copied again; None where nothing was ever folded. Raises
    WarehouseDamaged or PublicationFailed where tables or copy are not what was folded; the link
    then stays.
    """
    home = work.home
    with work.writing() as writer:
        folds = meta.held(writer)
        holds = {f"{fold.connection}/{fold.stream}": fold.manifest for fold in folds.values()}
        last = versions.latest(ledger)
        if not holds or (last is not None and last.holds == holds and _is_open(home, last)):
            return last if holds else None
        meta.verify(writer, folds)
        number, now = _next_number(home, last), clock.now()
        meta.tell(writer, number, now)
        interface.tell(writer, ledger)
        proofs.tell(writer, ledger)
        counts = database.counts(writer)
        writer.execute("CHECKPOINT")
        writer.close()  # the copy is of a file that nobody has open
        file = home.published / f"warehouse.v{number:08}.duckdb"
        _copy(home, file, counts)
        version = Version(number, run, file.name, holds, counts, now)
        versions.add(ledger, version)
        _prune(home, keep)
    return version


def _copy(home: Home, file: Path, counts: dict[str, int]) -> None:
    """Put a verified copy under the file's name, then point the link at it."""
    _sweep(home)
    source, part = home.work / "warehouse.duckdb", file.with_suffix(".duckdb.part")
    shutil.copyfile(source, part)
    _verify(source, part, counts)
    _settle(part, file)
    _point(home, file)


def _is_open(home: Home, version: Version) -> bool:
    """Tell whether the link leads to a version's file."""
    return home.link.is_file() and home.link.resolve().name == version.file


def _next_number(home: Home, last: Version | None) -> int:
    """Return a number that neither ledger nor folder knows.

    A run killed between the two left a file that analysts may have open.
    """
    files = [int(file.stem.removeprefix("warehouse.v")) for file in _files(home)]
    return max([last.version if last else 0, *files]) + 1


def _files(home: Home) -> list[Path]:
    return sorted(home.published.glob("warehouse.v????????.duckdb"))


def _sweep(home: Home) -> None:
    """Remove what a killed publication left; never anything in work/."""
    for pattern in ("*.part", "*.part.wal", "warehouse.v*.duckdb.wal"):
        for file in home.published.glob(pattern):
            file.unlink()


def _verify(source: Path, copy: Path, counts: dict[str, int]) -> None:
    """Raise PublicationFailed unless the copy is the same bytes and opens with the same rows."""
    same = _digest(source) == _digest(copy)
    with duckdb.connect(copy, read_only=True) as reader:
        found = database.counts(reader)
    if not same or found != counts:
        raise PublicationFailed(
            f"the copy holds {found}, the warehouse {counts}; the last published file stays"
        )


def _digest(file: Path) -> bytes:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").digest()


def _settle(part: Path, file: Path) -> None:
    """Make the copy durable, read-only and named."""
    _fsync(part)
    part.chmod(0o444)
    part.rename(file)
    _fsync(file.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _point(home: Home, file: Path) -> None:
    """Swap the link in one step: there is no moment without a warehouse."""
    fresh = home.link.with_suffix(".link")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(file.relative_to(home.root))
    fresh.replace(home.link)
    _fsync(home.root)


def _prune(home: Home, keep: int) -> None:
    for file in _files(home)[:-keep]:
        file.unlink()
