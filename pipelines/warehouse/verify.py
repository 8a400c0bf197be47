"""Verifying a home: pages against their names, manifests against the ledger, tables against both.

Here: what is wrong, where, what it means and what to do. Nothing is mended and nothing is sent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb
from sqlalchemy import Engine

from pipelines.errors import LandingFailed, PartnerSyncError
from pipelines.settings import Home
from pipelines.state import bases, closes, journal, redactions, versions
from pipelines.state.journal import ManifestRow
from pipelines.state.versions import Version
from pipelines.warehouse import base, damage, meta, publish, totals
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.database import Work, transaction
from pipelines.warehouse.editions import Editions, editions
from pipelines.warehouse.frozen import Copies
from pipelines.warehouse.lake import Lake


@dataclass(frozen=True)
class Fault:
    """What is wrong, where, what it means for the data, and what to do."""

    where: str
    what: str
    means: str
    do: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.means}. {self.do}."


@dataclass(frozen=True)
class Checked:
    """How far a verification is: bytes of archived pages read, of all that there are."""

    done: int
    all: int


@dataclass(frozen=True)
class Verification:
    """One look at everything of a home; `told` hears how far the longest part of it is."""

    work: Work | Lake
    ledger: Engine
    archive: Archive
    told: Callable[[Checked], None]

    @property
    def home(self) -> Home:
        """The folders that are looked at."""
        return self.work.home

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong, in the order of the chain."""
        yield from self._pages()
        yield from self._base()
        yield from self._redactions()
        yield from self._manifests()
        yield from self._tables()
        yield from self._versions()
        yield from self._closes()

    def _pages(self) -> Iterator[Fault]:
        files = self.archive.pages()
        whole, done = sum(files.values()), 0
        for (digest, size), body in zip(files.items(), self.archive.bodies(files), strict=True):
            try:
                body()
            except LandingFailed as error:
                yield Fault(
                    f"archive/pages/{digest[:2]}",
                    str(error),
                    "what was read from this page stays in the tables, and cannot be folded again",
                    "Restore the file from a copy of the archive",
                )
            done += size
            self.told(Checked(done, whole))

    def _base(self) -> Iterator[Fault]:
        newest = bases.newest(self.ledger)
        if newest is None:
            return
        try:
            with base.file(self.archive, newest) as file:
                whole = base.digest(file) == newest.sha256
        except OSError:
            whole = False
        if not whole:
            means = "What it holds is nowhere else: the tables cannot be built again from here"
            do = "Restore the file from a copy of the archive"
            where = f"archive/base/{newest.file}"
            yield Fault(where, "it is missing or not what was written", means, do)

    def _redactions(self) -> Iterator[Fault]:
        """Compare what archive and ledger say of erased records: each is evidence for the other."""
        recorded = {each.old: each for each in redactions.every(self.ledger)}
        for old in sorted(recorded.keys() | self.archive.redactions.keys()):
            if recorded.get(old) != self.archive.redactions.get(old):
                where, what = "archive/redactions", f"page {old}: the ledger says something else"
                means = "Somebody may have changed what was read, rather than erased from it"
                yield Fault(where, what, means, "Restore archive and state from the same copy")
        for digest in self.archive.pages():
            if digest in self.archive.redactions:
                what = "records were erased from it, and the page as it was is still there"
                yield Fault(f"page {digest}", what, "An erasure was killed", "Run erase again")

    def _manifests(self) -> Iterator[Fault]:
        held, there = base.held(self.ledger), self.archive.pages().keys()
        for row in journal.every_manifest(self.ledger):
            if row.file in held:
                continue
            where = f"archive/manifests/{row.file}"
            try:
                manifest = self.archive.read(row.file)
            except LandingFailed as error:
                yield Fault(where, str(error), _UNFOLDED, "Restore the file from a copy")
                continue
            if differs := _difference(manifest, row):
                yield Fault(where, differs, _UNFOLDED, "Restore the file from a copy")
            for page in manifest.evidence:
                if self.archive.now(page.sha256) not in there:
                    what = f"page {page.sha256} at offset {page.offset} is missing"
                    yield Fault(where, what, _UNFOLDED, "Restore the page from a copy")

    def _tables(self) -> Iterator[Fault]:
        if not self.work.there:
            return
        where, remedy = self.work.title, self.work.remedy
        try:
            with self.work.writing() as writer:
                damaged = [*damage.found(writer)]
                yield from (Fault(where, str(each), _UNREADABLE, remedy) for each in damaged)
                if damaged:
                    return
                with transaction(writer):  # of a lake, in which others go on writing
                    folds = meta.held(writer)
                    meta.verify(writer, folds)
                    yield from self._against_the_ledger(writer)
                    found, content = totals.of(writer), publish.content(self.ledger, folds)
        except (PartnerSyncError, duckdb.Error) as error:
            yield Fault(where, str(error), "What analysts open is as it was", remedy)
            return
        last = versions.latest(self.ledger)
        if fault := publish.touched(found, content.made_of, last):
            means = "Somebody else wrote into it; what analysts open is as it was"
            yield Fault(where, fault, means, remedy)

    def _against_the_ledger(self, writer: duckdb.DuckDBPyConnection) -> Iterator[Fault]:
        rows = {row.file: row.rows for row in journal.every_manifest(self.ledger)}
        for fold in meta.folds(writer):
            if fold.manifest in rows and fold.read != rows[fold.manifest]:
                what = f"{fold.read:,} rows of {fold.manifest} were folded"
                means = f"The ledger says that {rows[fold.manifest]:,} were read"
                yield Fault(self.work.title, what, means, self.work.remedy)

    def _versions(self) -> Iterator[Fault]:
        kept, opened = editions(self.work), versions.opened(self.ledger)
        for number in kept.numbers:
            version = versions.named(self.ledger, number)
            if version is None:
                means = "A publication was killed before it was recorded, or the ledger is restored"
                where = f"published/{kept.name(number)}"
                do = "Run publish again: analysts then open a newer one, and this one goes in time"
                yield Fault(where, "the ledger does not know it", means, do)
            else:
                faults = [*_published(kept, version)]
                yield from faults if number in kept.numbers else ()  # it may have gone meanwhile
        if opened and not kept.opens(opened):
            what = f"it does not lead to {opened.file}"
            yield Fault(kept.title, what, "Analysts open another version, or none", AGAIN)

    def _closes(self) -> Iterator[Fault]:
        copies = Copies(self.archive)
        for close in closes.every(self.ledger):
            if close.act is closes.Kind.CLOSE:
                where = f"archive/{copies.folder(close.month, close.number)}"
                means = f"What was signed off for {close.month:%Y-%m} can not be shown as it was"
                do = "Restore it from a copy of the archive; the tables of now are as they were"
                yield from (Fault(where, each, means, do) for each in copies.faults(close))


AGAIN = "Run `partner-sync publish`"
_UNREADABLE = "These values are lost here, not in the archive; what analysts open is as it was"
_UNFOLDED = "what was read is in the tables, and cannot be folded again"


def _difference(manifest: Manifest, row: ManifestRow) -> str:
    """Say where a manifest's file is not what the ledger says of it."""
    pairs = {
        "stream": (f"{manifest.connection}/{manifest.stream}", f"{row.connection}/{row.stream}"),
        "day": (manifest.day, row.day),
        "number": (manifest.number, row.number),
        "scan": (manifest.scan, row.scan),
        "pages": (len(manifest.pages), row.pages),
        "rows": (manifest.rows, row.rows),
    }
    wrong = [
        f"{name} {here}, in the ledger {its}" for name, (here, its) in pairs.items() if here != its
    ]
    return "; ".join(wrong)


def _published(kept: Editions, version: Version) -> Iterator[Fault]:
    where, do = f"published/{version.file}", kept.remedy
    try:
        with kept.reading(version) as reader:
            damaged = [*damage.found(reader)]
    except (PartnerSyncError, duckdb.Error):
        damaged = []  # it cannot even be opened: that is said below
    for each in damaged:
        yield Fault(where, str(each), "Whoever asks for these columns gets this error", do)
    try:
        kept.verify(version)
    except PartnerSyncError as error:
        means = "Whoever opens it reads something else than was published"
        yield Fault(where, str(error), means, do)
