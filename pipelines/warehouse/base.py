"""The base snapshot: the tables as they were before the oldest manifest that is kept.

Folding starts from it where older manifests were dropped. Here: the file below archive/base. Not
here: what is dropped (retention), folding (fold).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from hashlib import file_digest
from pathlib import Path

import duckdb
from sqlalchemy import Engine

from pipelines.errors import LandingFailed, StorageFailed
from pipelines.settings import Home
from pipelines.state import bases, journal
from pipelines.state.bases import Base
from pipelines.warehouse import database, link, meta
from pipelines.warehouse.database import Work
from pipelines.warehouse.excision import written_anew

PART = "base.part.duckdb"  # in work/, until it is whole


def path(home: Home, base: Base) -> Path:
    """Return where a snapshot lies."""
    return home.archive / "base" / base.file


def name(number: int) -> str:
    """Return the name of a snapshot's file."""
    return f"base.{number:06}.duckdb"


def digest(file: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def start(home: Home, ledger: Engine, file: Path) -> None:
    """Let a new database begin with the newest snapshot, empty where there is none.

    Raises LandingFailed where the snapshot is damaged.
    """
    base = bases.newest(ledger)
    if base is None:
        return
    source = path(home, base)
    part = file.with_name(f"{file.name}.part")
    try:
        shutil.copyfile(source, part)
        whole = digest(part) == base.sha256
        part.replace(file) if whole else part.unlink()
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageFailed(f"{source} cannot be copied to {file}: {error.strerror}") from None
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


def begin(work: Work, ledger: Engine) -> None:
    """Let a work database begin with the newest snapshot where it lacks what that holds.

    It was lost, is empty, or is an older copy that somebody restored: the manifests that would
    bring it further are dropped.
    """
    base = bases.newest(ledger)
    if base is None:
        return
    with work.alone():
        if _lacks(work, path(work.home, base)):
            work.file.with_name(f"{work.file.name}.wal").unlink(missing_ok=True)
            start(work.home, ledger, work.file)


def _lacks(work: Work, snapshot: Path) -> bool:
    """Tell whether something is folded in the snapshot that is not in the work database."""
    if not work.file.exists():
        return True
    try:
        with database.reading(snapshot) as reader:
            held = {fold.manifest for fold in meta.folds(reader)}
    except duckdb.Error:  # verify tells; a night can be folded without it
        return False
    with work.connected() as writer:
        return not held <= {fold.manifest for fold in meta.folds(writer)}


@contextmanager
def making(work: Work, ledger: Engine) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a new database that begins with the newest snapshot."""
    fresh = replace(work, name=PART)
    for file in (fresh.file, fresh.file.with_name(f"{PART}.wal")):
        file.unlink(missing_ok=True)
    start(work.home, ledger, fresh.file)
    try:
        with fresh.connected() as writer:
            yield writer
            writer.execute("CHECKPOINT")
    except BaseException:
        fresh.file.unlink(missing_ok=True)
        raise


def settle(work: Work, ledger: Engine, base: Base, *, anew: bool = False) -> Base:
    """Put the new database into the archive and record it; return it with its digest.

    `anew` writes every value into a file of its own: nothing that was deleted goes with them.
    """
    part = work.home.work / PART
    if anew:
        fresh = part.with_name(f"{PART}.fresh")
        written_anew(part, fresh)
        fresh.replace(part)
    file = path(work.home, base)
    file.parent.mkdir(exist_ok=True, mode=0o700)
    link.fsync(part)
    settled = replace(base, sha256=digest(part))
    part.replace(file)
    link.fsync(file.parent)
    bases.add(ledger, settled)
    return settled


def keep_newest(home: Home, ledger: Engine) -> None:
    """Remove every snapshot but the newest: older ones, and one that a kill left unrecorded."""
    newest = bases.newest(ledger)
    for file in (home.archive / "base").glob("base.*"):
        if newest is None or file.name != newest.file:
            file.unlink()
