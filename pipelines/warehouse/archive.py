"""The archive: page bodies exactly as received, and the manifests that put them in order.

A page's name is the SHA-256 of its body, so equal pages of two nights are one file. Nothing here is
ever changed, but for records that a person erased (redaction). Not here: where the files lie and
how they appear, whole or not at all (store).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, partial
from hashlib import sha256

import msgspec
import zstandard

from pipelines.errors import LandingFailed
from pipelines.settings import Home
from pipelines.state.journal import LinkedPage
from pipelines.state.locks import Files, Lock, Locks
from pipelines.state.proof import Grade, Proof
from pipelines.state.redactions import Redaction
from pipelines.warehouse import store
from pipelines.warehouse.store import Store

SUFFIX = ".json.zst"
_IN_PASSES = {Grade.COMPLETE_BY_COUNT, Grade.PARTIAL}
LEVEL = 1  # 457 MB/s at 4.9x on usage pages; higher levels gain little


class Manifest(msgspec.Struct, frozen=True):
    """One proven reading of a list: which pages, when and by whom.

    `key` is the field that identifies a record, None where the whole record does. `pages` are
    those whose rows are loaded: the ones that belong to no chain first, then the chain in its
    order. `stitched` tells of each how many of its rows, from its first, belong to the chain where
    they are not in the next page too; empty: all of them, or none of a list read in passes.

    `superseded` are pages that were read before the length check of a list that was counted: they
    are evidence, and not loaded. `repeated` are places (`position` of one of `pages`, row in it)
    of records that the list contains twice, proven: one place each.
    """

    connection: str
    stream: str
    day: date
    number: int
    run: str
    scan: str
    key: str | None
    begun_at: datetime
    ended_at: datetime
    pages: tuple[LinkedPage, ...]
    stitched: tuple[int, ...] = ()
    proof: Proof | None = None
    superseded: tuple[LinkedPage, ...] = ()
    repeated: tuple[tuple[int, int], ...] = ()

    @property
    def file(self) -> str:
        """Where the manifest lies below archive/manifests."""
        return f"{self.connection}/{self.stream}/{self.day}.{self.number:03}.json"

    @property
    def rows(self) -> int:
        """Records read on the pages that are loaded, those read twice counted twice."""
        return sum(page.rows for page in self.pages)

    @property
    def evidence(self) -> tuple[LinkedPage, ...]:
        """Every page of the scan, as the archive has to keep it: superseded ones too."""
        return (*self.superseded, *self.pages)

    @property
    def counted(self) -> bool:
        """Whether the list was read in several passes because its order changes."""
        return self.proof is not None and self.proof.grade in _IN_PASSES

    def stitched_rows(self, place: int) -> int:
        """Return how many rows of a page, from its first, belong to the chain.

        A list that was read in several passes has no chain: each page shows rows of other pages.
        """
        if self.stitched:
            return self.stitched[place]
        return 0 if self.counted else self.pages[place].rows


@dataclass(frozen=True)
class Archive:
    """Pages, manifests and redactions in a store."""

    store: Store
    locks: Locks

    def put(self, body: bytes) -> str:
        """Store a page body durably; return its SHA-256 in hexadecimal.

        A file that was damaged on disk is written anew: it would spoil every reading of this page.
        """
        digest = sha256(body).hexdigest()
        try:
            self.body(digest)  # what was erased from a page stays erased where it is sent again
        except LandingFailed:
            compressed = zstandard.ZstdCompressor(level=LEVEL).compress(body)
            self.store.put(_page(digest), compressed)
        return digest

    def body(self, digest: str) -> bytes:
        """Return a page body, or what is left of it where records of it were erased.

        Raises LandingFailed where it is missing or not what was read.
        """
        now = self.now(digest)
        return _whole(now, partial(self.store.get, _page(now)))

    def bodies(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """Yield what returns each page's body, as `body` does, without waiting for one by one."""
        every = [self.now(digest) for digest in digests]
        for now, get in zip(every, self.store.each(map(_page, every)), strict=True):
            yield partial(_whole, now, get)

    def now(self, digest: str) -> str:
        """Return the page that is read in a page's place: itself, unless it was redacted."""
        known = self.redactions
        while digest in known:
            digest = known[digest].new
        return digest

    def erased(self, digest: str) -> frozenset[int]:
        """Return which records of a page were erased; null is in their place."""
        rows, known = set[int](), self.redactions
        while digest in known:
            rows.update(known[digest].rows)
            digest = known[digest].new
        return frozenset(rows)

    @property
    def redactions(self) -> dict[str, Redaction]:
        """Every recorded redaction by the page that it replaces, another run's of just now too."""
        acts, found = self._redactions
        while self.store.lately(file := _act(len(acts) + 1)):
            some = msgspec.json.decode(self.store.get(file), type=list[Redaction])
            found |= {each.old: each for each in some}
            acts.add(file)
        return found

    @cached_property
    def _redactions(self) -> tuple[set[str], dict[str, Redaction]]:
        """The files of redactions that were read, and what they say."""
        return set(), {}

    def redact(self, redactions: Sequence[Redaction]) -> None:
        """Record that pages are read in the place of others, then remove those."""
        known = [each for each in redactions if each.old not in self.redactions]
        if known:
            content = msgspec.json.format(msgspec.json.encode(known), indent=1)
            self.store.put(_act(len(self._redactions[0]) + 1), content)
            self.store.settle()
        self.store.remove(_page(each.old) for each in redactions)

    def has(self, digest: str) -> bool:
        """Tell whether there is a page of that name, or what is left of it."""
        return self.store.has(_page(self.now(digest)))

    def pages(self) -> dict[str, int]:
        """Return the name and the size of every page."""
        found = self.store.sizes("pages")
        return {
            file.rsplit("/", 1)[1].removesuffix(SUFFIX): size
            for file, size in found.items()
            if file.endswith(SUFFIX)
        }

    def drop(self, pages: Iterable[str], manifests: Iterable[str]) -> None:
        """Remove pages, then manifests, by their names; only where no other writes."""
        self.store.remove(map(_page, pages))
        self.store.remove(f"manifests/{file}" for file in manifests)

    def manifests(self) -> dict[str, int]:
        """Return the name and the size of every manifest."""
        found = self.store.sizes("manifests")
        return {file.removeprefix("manifests/"): size for file, size in found.items()}

    def numbering(self) -> Lock:
        """Return the lock under which a manifest is numbered, written and recorded."""
        return self.locks.lock("manifests")

    def write(self, manifest: Manifest) -> None:
        """Store a manifest, once; raise FileExistsError where its number is another's."""
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        self.store.create(f"manifests/{manifest.file}", content)

    def settle(self, manifest: Manifest) -> Manifest:
        """Store a manifest under the next free number; return it as it is stored.

        One that a killed run stored but did not record is taken over, unless a page of it was lost
        since, and read again.
        """
        while True:
            there = self.stored(manifest.file)
            if there and _same(there, manifest):
                return there
            if there:
                manifest = msgspec.structs.replace(manifest, number=manifest.number + 1)
                continue
            with suppress(FileExistsError):  # somebody took the number since: a lock may be lost
                self.write(manifest)
                return manifest

    def stored(self, file: str) -> Manifest | None:
        """Return a manifest, None where there is none by its name."""
        return self.read(file) if self.store.has(f"manifests/{file}") else None

    def read(self, file: str) -> Manifest:
        """Return a manifest by its name below archive/manifests."""
        try:
            return msgspec.json.decode(self.store.get(f"manifests/{file}"), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise LandingFailed(f"manifest {file} cannot be read: {error}") from None


def opened(home: Home, address: str | None = None, locks: Locks | None = None) -> Archive:
    """Return the archive of a home, or the one at an address that several machines share."""
    return Archive(store.opened(home, address), locks or Files(home.archive))


def _same(there: Manifest, manifest: Manifest) -> bool:
    """Whether two manifests sum up the same answers in the same way."""
    numbered = msgspec.structs.replace(there, number=manifest.number, run=manifest.run)
    return numbered == manifest


def _page(digest: str) -> str:
    return f"pages/{digest[:2]}/{digest}{SUFFIX}"


def _act(number: int) -> str:
    return f"redactions/{number:06}.json"


def _whole(digest: str, get: Callable[[], bytes]) -> bytes:
    """Return a page's body; raise LandingFailed where it is missing or not what was read."""
    try:
        body = zstandard.ZstdDecompressor().decompress(get())
    except (OSError, zstandard.ZstdError) as error:
        raise LandingFailed(f"archived page {digest}{SUFFIX} cannot be read: {error}") from None
    if sha256(body).hexdigest() != digest:
        raise LandingFailed(f"archived page {digest}{SUFFIX} was changed since it was read")
    return body
