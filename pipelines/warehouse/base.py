"""The base snapshot: the tables as they were before the oldest manifest that is kept.

Folding starts from it where older manifests were dropped. Here: the archive's file base/…. Not
here: what is dropped (retention), folding (fold).
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import date
from hashlib import file_digest
from pathlib import Path

import duckdb
from sqlalchemy import Engine

from pipelines.errors import LandingFailed, StorageFailed
from pipelines.state import bases, journal
from pipelines.state.bases import Base
from pipelines.warehouse import database, meta
from pipelines.warehouse.archive import Archive
from pipelines.warehouse.database import Work
from pipelines.warehouse.excision import written_anew
from pipelines.warehouse.lake import Lake

PART = "base.part.duckdb"  # in work/, until it is whole


def name(number: int) -> str:
    """Return the name of a snapshot's file."""
    return f"base.{number:06}.duckdb"


def file(archive: Archive, base: Base) -> AbstractContextManager[Path]:
    """Give a path at which a snapshot can be read while the block lasts."""
    return archive.store.file(f"base/{base.file}")


def digest(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def start(archive: Archive, ledger: Engine, begun: Path) -> None:
    """Let a new database begin with the newest snapshot, empty where there is none.

    Raises LandingFailed where the snapshot is damaged.
    """
    base = bases.newest(ledger)
    if base is None:
        return
    source = archive.store.where(f"base/{base.file}")
    part = begun.with_name(f"{begun.name}.part")
    try:
        with file(archive, base) as snapshot:
            shutil.copyfile(snapshot, part)
        whole = digest(part) == base.sha256
        part.replace(begun) if whole else part.unlink()
    except OSError as error:
        part.unlink(missing_ok=True)
        said = error.strerror or error
        raise StorageFailed(f"{source} cannot be copied to {begun}: {said}") from None
    if not whole:
        raise LandingFailed(
            f"{source} was changed since it was written, and what it holds is nowhere else: restore"
            " it from a copy of the archive. What analysts open is as it was."
        )


def held(ledger: Engine) -> frozenset[str]:
    """Return the manifests that the newest snapshot holds."""
    base = bases.newest(ledger)
    return frozenset(base.manifests) if base else frozenset()


def days(ledger: Engine) -> set[date]:
    """Return the days of which the newest snapshot holds a list's last reading: what they are."""
    last = {
        (row.connection, row.stream, row.day): row.file for row in journal.every_manifest(ledger)
    }
    there = held(ledger)
    return {day for (_, _, day), file in last.items() if file in there}


def begin(work: Work | Lake, archive: Archive, ledger: Engine) -> None:
    """Let a work database begin with the newest snapshot where it lacks what that holds.

    It was lost, is empty, or is an older copy that somebody restored: the manifests that would
    bring it further are dropped.
    """
    base = bases.newest(ledger)
    if base is None or not _lacks(work, archive, base):
        return
    with work.alone():
        if _lacks(work, archive, base):  # still
            fresh = work.beside(PART)
            start(archive, ledger, fresh.file)
            work.swap(fresh)
            fresh.file.unlink(missing_ok=True)


def _lacks(work: Work | Lake, archive: Archive, base: Base) -> bool:
    """Tell whether something is folded in the snapshot that is not in the work database."""
    if not work.there:
        return True
    with work.writing() as writer:
        folded = {fold.manifest for fold in meta.folds(writer)}
    if folded.issuperset(base.manifests):  # the usual case: the file need not be fetched
        return False
    try:
        with file(archive, base) as snapshot, database.reading(snapshot) as reader:
            return not folded.issuperset(fold.manifest for fold in meta.folds(reader))
    except (OSError, duckdb.Error):  # verify tells; a night can be folded without it
        return False


@contextmanager
def making(
    work: Work | Lake, archive: Archive, ledger: Engine
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a new database that begins with the newest snapshot."""
    fresh = work.beside(PART)
    for left in (fresh.file, fresh.file.with_name(f"{PART}.wal")):
        left.unlink(missing_ok=True)
    start(archive, ledger, fresh.file)
    try:
        with fresh.connected() as writer:
            yield writer
            writer.execute("CHECKPOINT")
    except BaseException:
        fresh.file.unlink(missing_ok=True)
        raise


def settle(
    work: Work | Lake, archive: Archive, ledger: Engine, base: Base, *, anew: bool = False
) -> Base:
    """Put the new database into the archive and record it; return it with its digest.

    `anew` writes every value into a file of its own: nothing that was deleted goes with them.
    """
    part = work.home.work / PART
    if anew:
        fresh = part.with_name(f"{PART}.fresh")
        written_anew(part, fresh)
        fresh.replace(part)
    settled = replace(base, sha256=digest(part))
    archive.store.keep(part, f"base/{base.file}")
    bases.add(ledger, settled)
    return settled


def keep_newest(archive: Archive, ledger: Engine) -> None:
    """Remove every snapshot but the newest: older ones, and one that a kill left unrecorded."""
    newest = bases.newest(ledger)
    kept = f"base/{newest.file}" if newest else ""
    archive.store.remove([name for name in archive.store.sizes("base") if name != kept])
