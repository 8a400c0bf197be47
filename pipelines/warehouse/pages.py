"""A manifest's pages: their records as sent, and some at once as columns.

Every complaint about a page names the stream, the offset and the archived file. What becomes of the
records is the fold's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pyarrow as pa

from pipelines.api import page
from pipelines.api.content import canonical
from pipelines.errors import LandingFailed
from pipelines.state.journal import LinkedPage
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.decode import Decoded, Decoder, Misfit
from pipelines.warehouse.known import Digests

AT_ONCE = 2_000  # records decoded together: of many pages where most are known


@dataclass(frozen=True)
class Body:
    """One page: its records as sent; the first `stitched` of them belong to the chain.

    In the place of those `erased` is null: nobody knows them any more.
    """

    page: LinkedPage
    texts: Sequence[Any]
    stitched: int
    erased: frozenset[int] = frozenset()

    def left(self, rows: Iterable[int]) -> list[int]:
        """Return which of some rows were not erased."""
        return [row for row in rows if row not in self.erased]


@dataclass
class Portion:
    """Records to be decoded together, with their digests; `parts` are their pages and rows there.

    `stitched` counts where they are one page of a list without a key.
    """

    texts: list[Any] = field(default_factory=list)
    digests: list[Digests] = field(default_factory=list)
    parts: list[tuple[LinkedPage, Sequence[int]]] = field(default_factory=list)
    stitched: int = 0

    def add(self, body: Body, digests: Digests, rows: Sequence[int]) -> None:
        """Take some rows of a page; few of them as copies, or they would keep all of the page."""
        self.stitched = body.stitched
        if not rows:
            return
        whole = len(rows) == len(body.texts)
        self.texts += body.texts if whole else [bytes(body.texts[row]) for row in rows]
        self.digests.append(digests[rows])
        self.parts.append((body.page, rows))

    def place(self, number: int) -> tuple[LinkedPage, int]:
        """Return the page and the row there of one of the records."""
        for linked, rows in self.parts:
            if number < len(rows):
                return linked, rows[number]
            number -= len(rows)
        raise IndexError(number)


@dataclass(frozen=True)
class Read:
    """A portion decoded; `keys` identify the records of `decoded.rows` where no field does."""

    portion: Portion
    decoded: Decoded
    keys: pa.Array


@dataclass
class Pages:
    """A manifest's pages; the decoder's shape grows with what they hold."""

    archive: Archive
    manifest: Manifest
    decoder: Decoder
    equals: Counter[str] = field(default_factory=Counter)

    def bodies(self) -> Iterator[Body]:
        """Yield the pages in chain order."""
        self.equals.clear()
        for place in range(len(self.manifest.pages)):
            yield self.body(place)

    def body(self, place: int) -> Body:
        """Return one page; raise LandingFailed where the archive lost it."""
        linked = self.manifest.pages[place]
        try:
            texts = page.records(self.archive.body(linked.sha256))
        except LandingFailed as error:
            raise self._told(linked, error) from error
        if len(texts) != linked.rows:
            found = f"it holds {len(texts)} records, but {linked.rows} were read"
            raise self._told(linked, found)
        stitched, erased = self.manifest.stitched_rows(place), self.archive.erased(linked.sha256)
        return Body(linked, texts, stitched, erased)

    def read(self, portion: Portion) -> Read:
        """Decode some records; the shape grows where it is too narrow for them."""
        texts = portion.texts
        try:
            try:
                decoded = self.decoder.records(texts)
            except Misfit as misfit:
                self.decoder = misfit.wider
                decoded = self.decoder.records(texts)
        except LandingFailed as error:
            raise self._told(portion.parts[0][0], error) from error
        return Read(portion, decoded, self._keys(portion, decoded))

    def _told(self, linked: LinkedPage, error: object) -> LandingFailed:
        return LandingFailed(
            f"{self.manifest.stream}: page at offset {linked.offset}: {error}. The stream "
            f"keeps its last published rows; the page is archived as {linked.sha256}."
        )

    def _keys(self, portion: Portion, decoded: Decoded) -> pa.Array:
        if self.manifest.key is not None:
            return pa.nulls(len(decoded.rows), pa.string())
        plain = ((row, canonical(bytes(portion.texts[row]))) for row in decoded.rows)
        return pa.array(list(self._ordinals(plain, portion.stitched)), pa.string())

    def _ordinals(self, records: Iterable[tuple[int, bytes]], stitched: int) -> Iterator[str]:
        """Yield what identifies records without a key: their content, and which of its equals.

        The stitched rows are counted through the chain. The others were read again, or are in no
        chain: they count from what is stitched so far, or from nothing, so that no reading of a
        record makes another of it. There are as many equals as any one view of the list held.
        """
        others: Counter[str] = Counter()
        for row, record in records:
            digest = sha256(record).hexdigest()
            (self.equals if row < stitched else others)[digest] += 1
            before = self.equals[digest] if stitched else 0
            yield f"{digest}.{before + others[digest]}"
