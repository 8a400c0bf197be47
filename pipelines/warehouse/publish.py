"""Publishing: a verified copy of the work database, swapped in under one link.

Analysts open `warehouse.duckdb`; whoever has an older version open keeps reading that one. Here:
what is published, when, and the step back. Not here: the files (link), what `meta` says.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

import duckdb
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import ConfigurationError, PublicationFailed, StorageFailed, WarehouseDamaged
from pipelines.settings import Home
from pipelines.state import versions
from pipelines.state.versions import Rollback, Version
from pipelines.warehouse import (
    comments,
    database,
    dictionary,
    effort,
    interface,
    link,
    meta,
    proofs,
    totals,
)
from pipelines.warehouse.database import Work
from pipelines.warehouse.meta import Held

ADDED = ""  # no stream: what marks the additions of an edition


@dataclass(frozen=True)
class Content:
    """What a version would hold, as far as a newer one is worth its copy for it."""

    holds: Mapping[str, str]
    doubts: list[str]
    made_of: Mapping[str, str]


def _nothing(_database: duckdb.DuckDBPyConnection) -> None:
    """Add nothing to the tables."""


@dataclass(frozen=True)
class Edition:
    """A version that is wanted: the run that it is of, and how many are kept.

    `add` makes of the tables what else belongs into the same file; `digest` tells whether that
    would say something else of the same folds.
    """

    run: str
    keep: int
    add: Callable[[duckdb.DuckDBPyConnection], None] = _nothing
    digest: str = ""


def publish(work: Work, ledger: Engine, wanted: Edition, clock: Clock) -> Version | None:
    """Publish what the work database holds; return the version that analysts open now.

    What is published already is not copied again, nor what was rolled back; None where nothing was
    ever folded. Raises WarehouseDamaged, PublicationFailed or StorageFailed where tables or copy
    are not what was folded, or the disk takes no copy; the link then stays.
    """
    home = work.home
    with work.alone():
        with work.connected() as writer:
            folds = meta.held(writer)
            held, last = content(ledger, folds), versions.latest(ledger)
            held = replace(held, made_of={**held.made_of, ADDED: wanted.digest})
            if not folds or (stays := _standing(home, ledger, held)):
                return stays if folds else None
            number = _next_number(home, last)
            version = Version(number, wanted.run, link.name(number), held.holds, {}, clock.now())
            with _in_words():
                version = _prepared(writer, ledger, (folds, wanted), version)
        version = replace(version, made_of=held.made_of, doubts=held.doubts)
        _untouched(version, last)
        version = replace(version, sha256=_digest(work.file))
        file = home.published / version.file
        link.put(home, work.file, file, lambda part: verify(part, version))
        link.point(home, file)
        versions.add(ledger, version)
        link.prune(home, wanted.keep)
    return version


def roll_back(work: Work, ledger: Engine, to: int | None, wanted: Rollback) -> Version:
    """Let analysts open an older version: the one before, where none is named; return it.

    `wanted` says who, when and why. What is rolled back stays so until something new is folded.
    Raises ConfigurationError where there is no such file, PublicationFailed where it is damaged.
    """
    home = work.home
    with work.alone():
        opened, newest = versions.opened(ledger), versions.latest(ledger)
        files = link.files(home)
        if opened is None or newest is None:
            raise ConfigurationError("nothing was published yet: there is nothing to roll back")
        older = [number for number in files if number < opened.version]
        number = to if to is not None else max(older, default=0)
        version = versions.named(ledger, number) if number in files else None
        if version is None:
            kept = ", ".join(map(str, files))
            which = f"version {to}" if to is not None else f"version before {opened.version}"
            raise ConfigurationError(
                f"there is no published file of a {which}; there are {kept} "
                "(keep_versions says how many are kept). What analysts open is as it was."
            )
        verify(files[number], version)
        decided = replace(wanted, newest=newest.version, opened=number)
        versions.roll_back(ledger, decided)  # first: what a kill leaves undone, publish mends
        link.point(home, files[number])
    return version


def verify(file: Path, version: Version) -> None:
    """Raise PublicationFailed unless a file is what was published, byte for byte and row for row.

    The rows are counted and summed again: equal bytes that cannot be read would be of no use.
    """
    fault = "" if _digest(file) == version.sha256 else f"the bytes of {version.file} differ"
    try:
        with database.reading(file) as reader:
            found = database.counts(reader)
            fault = fault or totals.difference(totals.of(reader), version.totals)
    except duckdb.Error as error:
        raise PublicationFailed(
            f"{version.file} cannot be opened: {error}; the last published file stays"
        ) from None
    if fault or found != version.counts:
        raise PublicationFailed(
            f"the copy holds {found}, the ledger says {version.counts}; {fault}; the last "
            "published file stays"
        )


def content(ledger: Engine, folds: Held) -> Content:
    """Return what a version of these folds would hold."""
    holds, marks = {}, dict[str, list[str]]()
    for fold in folds.values():
        holds[f"{fold.connection}/{fold.stream}"] = fold.manifest
        marks.setdefault(fold.stream, []).append(f"{fold.manifest} {fold.folded_at.isoformat()}")
    made_of = {stream: ", ".join(sorted(each)) for stream, each in marks.items()}
    return Content(holds, proofs.doubtful(ledger, folds), made_of)


def _standing(home: Home, ledger: Engine, content: Content) -> Version | None:
    """Return the version that stays open since there is nothing new; mend a link that was lost."""
    last, opened = versions.latest(ledger), versions.opened(ledger)
    if last is None or opened is None or last.holds != content.holds:
        return None
    if _folds(last) != _folds(content):
        return None
    added = last.made_of.get(ADDED, "") != content.made_of[ADDED]
    if opened == last and (added or last.doubts != content.doubts):
        return None
    file = home.published / opened.file
    if not file.is_file():
        return None
    if not link.leads_to(home, opened):
        link.point(home, file)
    return opened


def _folds(of: Version | Content) -> dict[str, str]:
    """Return what marks the folds of every stream, without the additions."""
    return {stream: marks for stream, marks in of.made_of.items() if stream != ADDED}


def _prepared(
    writer: duckdb.DuckDBPyConnection,
    ledger: Engine,
    content: tuple[Held, Edition],
    version: Version,
) -> Version:
    """Let `meta` say what this version is, and settle the file; return what it counts."""
    folds, wanted = content
    meta.verify(writer, folds)
    with database.transaction(writer):
        meta.tell(writer, version.version, version.published_at)
        interface.tell(writer, ledger)
        proofs.tell(writer, ledger)
        effort.tell(writer, ledger)
        wanted.add(writer)
        dictionary.describe(writer)
        comments.tell(writer)
        dictionary.tell(writer)
    counted = replace(version, counts=database.counts(writer), totals=totals.of(writer))
    writer.execute("CHECKPOINT")  # the copy is of a file that nobody has open
    return counted


def touched(found: totals.Totals, made_of: Mapping[str, str], last: Version | None) -> str:
    """Say which stream's values changed though nothing was folded into it since a version."""
    for table in found:
        stream = table.partition(".")[2].partition("__")[0]
        if last is None or last.made_of.get(stream, "") != made_of.get(stream):
            continue
        fault = totals.difference({table: found[table]}, {table: last.totals.get(table, {})})
        if fault:
            return f"{fault} as in version {last.version}, and nothing was folded since"
    return ""


def _untouched(version: Version, last: Version | None) -> None:
    """Raise WarehouseDamaged where somebody else wrote into a table."""
    if fault := touched(version.totals, version.made_of, last):
        raise WarehouseDamaged(
            f"{fault}: somebody else wrote into it. What analysts open stays as it was. Move "
            "work/warehouse.duckdb away and run sync: it is built again from the archive."
        )


def _next_number(home: Home, last: Version | None) -> int:
    """Return a number that neither ledger nor folder knows.

    A run killed between the two left a file that analysts may have open.
    """
    return max([last.version if last else 0, *link.files(home)]) + 1


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


@contextmanager
def _in_words() -> Iterator[None]:
    """Say what a failure of the engine means: as a rule the disk is full."""
    try:
        yield
    except duckdb.Error as error:
        raise StorageFailed(
            f"the warehouse cannot be made ready for its publication: {error}. What analysts open "
            "is as it was, and what was read is archived: make room, then run "
            "`partner-sync publish`."
        ) from None
