"""Publishing: a verified copy of the work database, swapped in under one link.

Analysts open `warehouse.duckdb`; whoever has an older version open keeps reading that one. Here:
what is published, when, and the step back. Not here: the files (link), what `meta` says.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import ConfigurationError, StorageFailed, WarehouseDamaged
from pipelines.state import versions
from pipelines.state.versions import Rollback, Version
from pipelines.warehouse import (
    comments,
    database,
    dictionary,
    effort,
    interface,
    meta,
    proofs,
    totals,
)
from pipelines.warehouse.database import Work
from pipelines.warehouse.editions import Editions, editions
from pipelines.warehouse.lake import Lake
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
    would say something else of the same folds. `read` are the manifests that the run wants in it.
    """

    run: str
    keep: int
    add: Callable[[duckdb.DuckDBPyConnection], None] = _nothing
    digest: str = ""
    read: Collection[str] = ()


def publish(work: Work | Lake, ledger: Engine, wanted: Edition, clock: Clock) -> Version | None:
    """Publish what the work database holds; return the version that analysts open now.

    What is published already is not copied again, nor what was rolled back; None where nothing was
    ever folded. Raises WarehouseDamaged, PublicationFailed or StorageFailed where tables or copy
    are not what was folded, or the disk takes no copy; the link then stays.
    """
    kept = editions(work)
    if stays := _unchanged(kept, ledger, wanted):
        return stays
    with work.publishing():
        if stays := _unchanged(kept, ledger, wanted):  # another run published while this one waited
            return stays
        with work.connected() as writer:
            folds = meta.held(writer)
            held, last = content(ledger, folds), versions.latest(ledger)
            held = replace(held, made_of={**held.made_of, ADDED: wanted.digest})
            if not folds or (stays := _standing(kept, ledger, held)):
                return stays if folds else None
            number = _next_number(kept, last)
            version = Version(number, wanted.run, kept.name(number), held.holds, {}, clock.now())
            with _in_words():
                meta.verify(writer, folds, work.remedy)
                version = _prepared(writer, ledger, wanted, version)
                work.settle(writer)
        version = replace(version, made_of=held.made_of, doubts=held.doubts)
        _untouched(version, last, work.remedy)
        version = kept.put(version)
        kept.point(version)
        versions.add(ledger, version)
        first = last is None or last.published_at.date() < version.published_at.date()
        _keep_house(kept, wanted.keep, work.waiting, first=first)
    return version


def _keep_house(kept: Editions, keep: int, told: Callable[[str], None], *, first: bool) -> None:
    """Let go of what is older, and let the `first` version of a day tidy what lies there.

    The version is published whatever becomes of this; the next one tries again.
    """
    try:
        if first:
            kept.tidy()
        kept.keep_only(kept.numbers[-keep:])
    except (StorageFailed, OSError, duckdb.Error) as error:
        told(f"published, and older versions or small files are still there: {error}")


def roll_back(work: Work | Lake, ledger: Engine, to: int | None, wanted: Rollback) -> Version:
    """Let analysts open an older version: the one before, where none is named; return it.

    `wanted` says who, when and why. What is rolled back stays so until something new is folded.
    Raises ConfigurationError where there is no such file, PublicationFailed where it is damaged.
    """
    kept = editions(work)
    with work.publishing():
        opened, newest = versions.opened(ledger), versions.latest(ledger)
        numbers = kept.numbers
        if opened is None or newest is None:
            raise ConfigurationError("nothing was published yet: there is nothing to roll back")
        older = [number for number in numbers if number < opened.version]
        number = to if to is not None else max(older, default=0)
        version = versions.named(ledger, number) if number in numbers else None
        if version is None:
            listed = ", ".join(map(str, numbers))
            which = f"version {to}" if to is not None else f"version before {opened.version}"
            raise ConfigurationError(
                f"there is no published file of a {which}; there are {listed} "
                "(keep_versions says how many are kept). What analysts open is as it was."
            )
        kept.verify(version)
        decided = replace(wanted, newest=newest.version, opened=number)
        versions.roll_back(ledger, decided)  # first: what a kill leaves undone, publish mends
        kept.point(version)
    return version


def content(ledger: Engine, folds: Held) -> Content:
    """Return what a version of these folds would hold."""
    holds, marks = {}, dict[str, list[str]]()
    for fold in folds.values():
        holds[f"{fold.connection}/{fold.stream}"] = fold.manifest
        marks.setdefault(fold.stream, []).append(f"{fold.manifest} {fold.folded_at.isoformat()}")
    made_of = {stream: ", ".join(sorted(each)) for stream, each in marks.items()}
    return Content(holds, proofs.doubtful(ledger, holds.values()), made_of)


def _unchanged(kept: Editions, ledger: Engine, wanted: Edition) -> Version | None:
    """Return the version that stays open, where that is told without a turn and a look at tables.

    So runs whose rows another one has published already do not wait for each other. Whoever names
    no manifest publishes by hand, or as something is the matter: that is looked at.
    """
    if not wanted.read:
        return None
    last, opened = versions.latest(ledger), versions.opened(ledger)
    if last is None or opened is None or not set(wanted.read) <= set(last.holds.values()):
        return None
    if not kept.unchanged(last, opened):
        return None
    doubts = proofs.doubtful(ledger, last.holds.values())
    return opened if _says_all(last, opened, doubts, wanted.digest) else None


def _standing(kept: Editions, ledger: Engine, content: Content) -> Version | None:
    """Return the version that stays open since there is nothing new; mend a link that was lost."""
    last, opened = versions.latest(ledger), versions.opened(ledger)
    if last is None or opened is None or last.holds != content.holds:
        return None
    if _folds(last) != _folds(content):
        return None
    if not _says_all(last, opened, content.doubts, content.made_of[ADDED]):
        return None
    if opened.version not in kept.numbers:
        return None
    if not kept.opens(opened):
        kept.point(opened)
    return opened


def _says_all(last: Version, opened: Version, doubts: list[str], added: str) -> bool:
    """Tell whether the newest version says what there is to say beside its folds.

    While an older one is open, by a person's word, other doubts and additions are no reason for a
    new one.
    """
    return opened != last or (last.doubts == doubts and last.made_of.get(ADDED, "") == added)


def _folds(of: Version | Content) -> dict[str, str]:
    """Return what marks the folds of every stream, without the additions."""
    return {stream: marks for stream, marks in of.made_of.items() if stream != ADDED}


def _prepared(
    writer: duckdb.DuckDBPyConnection,
    ledger: Engine,
    wanted: Edition,
    version: Version,
) -> Version:
    """Let `meta` say what this version is, and settle the file; return what it counts."""
    with database.transaction(writer):
        meta.tell(writer, version.version, version.published_at)
        interface.tell(writer, ledger)
        proofs.tell(writer, ledger)
        effort.tell(writer, ledger)
        wanted.add(writer)
        dictionary.describe(writer)
        comments.tell(writer)
        dictionary.tell(writer)
    with database.transaction(writer):
        rows, found = totals.counted(writer)
        return replace(version, counts=rows, totals=found)


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


def _untouched(version: Version, last: Version | None, remedy: str) -> None:
    """Raise WarehouseDamaged where somebody else wrote into a table."""
    if fault := touched(version.totals, version.made_of, last):
        raise WarehouseDamaged(
            f"{fault}: somebody else wrote into it. What analysts open stays as it was. {remedy}."
        )


def _next_number(kept: Editions, last: Version | None) -> int:
    """Return a number that neither ledger nor warehouse knows.

    A run killed between the two left a version that analysts may have open.
    """
    return max([last.version if last else 0, *kept.numbers]) + 1


@contextmanager
def _in_words() -> Iterator[None]:
    """Say what a failure of the engine means: as a rule the disk is full."""
    try:
        yield
    except duckdb.Error as error:
        raise StorageFailed(
            f"the warehouse cannot be made ready for its publication: {error}. What analysts open "
            "is as it was, and what was read is archived: make room, or bring back what does not "
            "answer, then run `partner-sync publish`."
        ) from None
