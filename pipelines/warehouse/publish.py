"""Publishing: a verified copy of the work database, swapped in under one link.

Analysts open `warehouse.duckdb`; whoever has an older version open keeps reading that one. A copy
that was killed half way is swept by the next publication.
"""

import os
import shutil
from pathlib import Path

import duckdb
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import PublicationFailed
from pipelines.settings import Home
from pipelines.state import versions
from pipelines.state.versions import Version
from pipelines.warehouse import database
from pipelines.warehouse.database import Work


def publish(work: Work, ledger: Engine, run: str, keep: int, clock: Clock) -> Version:
    """Publish what the work database holds; return the new version.

    Raises PublicationFailed where the copy does not hold the same rows; the link then stays.
    """
    home = work.home
    with work.writing() as writer:
        number = _next_number(home, ledger)
        _tell(writer, ledger, number, clock)
        counts = database.counts(writer)
        writer.execute("CHECKPOINT")
        writer.close()  # the copy is of a file that nobody has open
        _sweep(home)
        file = home.published / f"warehouse.v{number:08}.duckdb"
        part = file.with_suffix(".duckdb.part")
        shutil.copyfile(home.work / "warehouse.duckdb", part)
        _verify(part, counts)
        _settle(part, file)
        _point(home, file)
        version = Version(number, run, file.name, counts, clock.now())
        versions.add_version(ledger, version)
        _prune(home, keep)
    return version


def _next_number(home: Home, ledger: Engine) -> int:
    """Return a number that neither ledger nor folder knows.

    A run killed between the two left a file that analysts may have open.
    """
    files = [int(file.stem.removeprefix("warehouse.v")) for file in _files(home)]
    return max([versions.next_version(ledger), *(number + 1 for number in files)])


def _files(home: Home) -> list[Path]:
    return sorted(home.published.glob("warehouse.v????????.duckdb"))


def _tell(writer: duckdb.DuckDBPyConnection, ledger: Engine, number: int, clock: Clock) -> None:
    """Write `meta.freshness`: what each stream of this version is made of."""
    writer.execute("CREATE SCHEMA IF NOT EXISTS meta")
    writer.execute(
        """
        CREATE OR REPLACE TABLE meta.freshness (
            connection VARCHAR, stream VARCHAR, rows BIGINT, duplicates BIGINT, manifest VARCHAR,
            folded_at TIMESTAMPTZ, published_at TIMESTAMPTZ, version BIGINT
        )
        """
    )
    now = clock.now()
    rows = [
        [fold.connection, fold.stream, fold.rows, fold.duplicates, fold.manifest, fold.folded_at]
        for fold in versions.folds(ledger)
    ]
    if rows:
        writer.executemany(
            "INSERT INTO meta.freshness VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [[*row, now, number] for row in rows],
        )


def _sweep(home: Home) -> None:
    """Remove what a killed publication left; never anything in work/."""
    for pattern in ("*.part", "*.part.wal", "warehouse.v*.duckdb.wal"):
        for file in home.published.glob(pattern):
            file.unlink()


def _verify(copy: Path, counts: dict[str, int]) -> None:
    with duckdb.connect(copy, read_only=True) as reader:
        found = database.counts(reader)
    if found != counts:
        raise PublicationFailed(
            f"the copy holds {found}, the warehouse {counts}; the last published file stays"
        )


def _settle(part: Path, file: Path) -> None:
    """Make the copy durable, read-only and named."""
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.chmod(0o444)
    part.rename(file)


def _point(home: Home, file: Path) -> None:
    """Swap the link in one step: there is no moment without a warehouse."""
    fresh = home.link.with_suffix(".link")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(file.relative_to(home.root))
    fresh.replace(home.link)


def _prune(home: Home, keep: int) -> None:
    for file in _files(home)[:-keep]:
        file.unlink()
