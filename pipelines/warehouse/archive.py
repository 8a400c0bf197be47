"""The archive: page bodies exactly as received, and the manifests that put them in order.

A page's name is the SHA-256 of its body, so equal pages of two nights are one file. Nothing here is
ever changed, but for records that a person erased (redaction); files appear whole (temporary name,
fsync, rename) or not at all.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec
import zstandard

from pipelines.errors import LandingFailed, StorageFailed
from pipelines.state.journal import LinkedPage
from pipelines.state.locks import Files, Lock, Locks
from pipelines.state.proof import Proof
from pipelines.state.redactions import Redaction

LEVEL = 1  # 457 MB/s at 4.9x on usage pages; higher levels gain little


class Manifest(msgspec.Struct, frozen=True):
    """One proven reading of a list: which pages, when and by whom.

    `key` is the field that identifies a record, None where the whole record does. All pages that
    were read are here: those that belong to no chain first, then the chain in its order.
    `stitched` tells of each how many of its rows, from its first, belong to the chain where they
    are not in the next page too; empty: all of them.
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

    @property
    def file(self) -> str:
        """Where the manifest lies below archive/manifests."""
        return f"{self.connection}/{self.stream}/{self.day}.{self.number:03}.json"

    @property
    def rows(self) -> int:
        """Records read, those read twice counted twice."""
        return sum(page.rows for page in self.pages)


@dataclass(frozen=True)
class Archive:
    """The folder `archive` of one home."""

    folder: Path
    locks: Locks | None = None

    def put(self, body: bytes) -> str:
        """Store a page body durably; return its SHA-256 in hexadecimal.

        A file that was damaged on disk is written anew: it would spoil every reading of this page.
        """
        digest = sha256(body).hexdigest()
        try:
            self.body(digest)  # what was erased from a page stays erased where it is sent again
        except LandingFailed:
            _write(self._page(digest), zstandard.ZstdCompressor(level=LEVEL).compress(body))
        return digest

    def body(self, digest: str) -> bytes:
        """Return a page body, or what is left of it where records of it were erased.

        Raises LandingFailed where it is missing or not what was read.
        """
        now = self.now(digest)
        file = self._page(now)
        try:
            body = zstandard.ZstdDecompressor().decompress(file.read_bytes())
        except (OSError, zstandard.ZstdError) as error:
            raise LandingFailed(f"archived page {file.name} cannot be read: {error}") from None
        if sha256(body).hexdigest() != now:
            raise LandingFailed(f"archived page {file.name} was changed since it was read")
        return body

    def now(self, digest: str) -> str:
        """Return the page that is read in a page's place: itself, unless it was redacted."""
        while digest in self.redactions:
            digest = self.redactions[digest].new
        return digest

    def erased(self, digest: str) -> frozenset[int]:
        """Return which records of a page were erased; null is in their place."""
        rows = set[int]()
        while digest in self.redactions:
            rows.update(self.redactions[digest].rows)
            digest = self.redactions[digest].new
        return frozenset(rows)

    @property
    def redactions(self) -> dict[str, Redaction]:
        """Every recorded redaction by the page that it replaces, another run's of just now too."""
        acts, found = self._redactions
        while os.path.exists(file := self._act(len(acts) + 1)):  # noqa: PTH110 thrice a page
            some = msgspec.json.decode(Path(file).read_bytes(), type=list[Redaction])
            found |= {each.old: each for each in some}
            acts.append(file)
        return found

    @cached_property
    def _redactions(self) -> tuple[list[str], dict[str, Redaction]]:
        """The files of redactions that were read, and what they say."""
        return [], {}

    @cached_property
    def _acts(self) -> str:
        return str(self.folder / "redactions")

    def _act(self, number: int) -> str:
        return f"{self._acts}/{number:06}.json"

    def redact(self, redactions: Sequence[Redaction]) -> None:
        """Record that pages are read in the place of others, then remove those."""
        known = [each for each in redactions if each.old not in self.redactions]
        if known:
            content = msgspec.json.format(msgspec.json.encode(known), indent=1)
            _write(Path(self._act(len(self._redactions[0]) + 1)), content)
        for each in redactions:
            self._page(each.old).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed runs had not finished writing; only where no other writes."""
        for file in self.folder.rglob(".*.part"):
            file.unlink(missing_ok=True)

    def has(self, digest: str) -> bool:
        """Tell whether there is a page of that name, or what is left of it."""
        return self._page(self.now(digest)).exists()

    def pages(self) -> Iterator[tuple[str, Path]]:
        """Yield the name and the file of every page."""
        for file in sorted((self.folder / "pages").glob("??/*.json.zst")):
            yield file.name.removesuffix(".json.zst"), file

    def numbering(self) -> Lock:
        """Return the lock under which a manifest is numbered, written and recorded."""
        return (self.locks or Files(self.folder)).lock("manifests")

    def write(self, manifest: Manifest) -> None:
        """Store a manifest; raise FileExistsError where its number is taken."""
        file = self._manifest(manifest.file)
        if file.exists():
            raise FileExistsError(file)
        _write(file, msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    def stored(self, file: str) -> Manifest | None:
        """Return a manifest, None where there is none by its name."""
        return self.read(file) if self._manifest(file).exists() else None

    def read(self, file: str) -> Manifest:
        """Return a manifest by its name below archive/manifests."""
        try:
            return msgspec.json.decode(self._manifest(file).read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise LandingFailed(f"manifest {file} cannot be read: {error}") from None

    def _page(self, digest: str) -> Path:
        return Path(f"{self.folder}/pages/{digest[:2]}/{digest}.json.zst")  # thrice as fast as "/"

    def _manifest(self, file: str) -> Path:
        return self.folder / "manifests" / file


def _write(file: Path, content: bytes) -> None:
    """Let a file appear whole: not even a power cut leaves half of one under its name.

    Raises StorageFailed where the disk does not take it.
    """
    try:
        appear(file, content)
    except OSError as error:
        raise StorageFailed(
            f"{file} cannot be written: {error.strerror}. What was read until now is kept: make "
            "room and run sync again: it goes on."
        ) from None


def appear(file: Path, content: bytes) -> None:
    """Write a file of mode 0600 that is there whole or not at all, even after a power cut."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f".{uuid4().hex}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
