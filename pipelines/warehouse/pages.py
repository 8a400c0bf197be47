"""A manifest's pages as columns: decoded one at a time, each record with what identifies it.

Every complaint about a page names the stream, the offset and the archived file. What becomes of the
records is the fold's.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import MAX_PREC, Context, Decimal
from hashlib import sha256
from itertools import islice

import msgspec
import pyarrow as pa

from pipelines.api import page
from pipelines.errors import LandingFailed
from pipelines.state.journal import LinkedPage
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.decode import Decoded, Decoder, Misfit
from pipelines.warehouse.schema import Kind

AT_ONCE = 16  # a few thousand records: enough for DuckDB's pace, little to hold
EXACT = Context(prec=MAX_PREC)  # the default would round at 28 digits
CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="number")


@dataclass(frozen=True)
class Read:
    """One page decoded; `keys` identify its records, in the order of `decoded.rows`."""

    page: LinkedPage
    texts: Sequence[bytes]
    decoded: Decoded
    keys: pa.Array

    def digests(self, rows: Iterable[int]) -> pa.Array:
        """Return what tells two readings of a record apart, good for this process only."""
        return pa.array([hash(bytes(self.texts[row])) for row in rows], pa.int64())


@dataclass
class Pages:
    """A manifest's pages, decoded one at a time; the shape grows with what they hold."""

    archive: Archive
    manifest: Manifest
    decoder: Decoder
    equals: Counter[str] = field(default_factory=Counter)
    spellings: set[tuple[Kind, pa.DataType]] = field(default_factory=set)

    def chunks(self) -> Iterator[list[Read]]:
        """Yield the pages in chain order, some at once."""
        pages = self._read()
        while chunk := list(islice(pages, AT_ONCE)):
            yield chunk

    def _read(self) -> Iterator[Read]:
        self.equals.clear()
        self.spellings.clear()
        whole = [page.rows for page in self.manifest.pages]
        stitched = self.manifest.stitched or whole
        for linked, rows in zip(self.manifest.pages, stitched, strict=True):
            try:
                texts = self._texts(linked)
                decoded = self._decoded(texts)
                yield Read(linked, texts, decoded, self._keys(texts, decoded, rows))
            except LandingFailed as error:
                raise LandingFailed(
                    f"{self.manifest.stream}: page at offset {linked.offset}: {error}. The stream "
                    f"keeps its last published rows; the page is archived as {linked.sha256}."
                ) from None

    def _texts(self, linked: LinkedPage) -> Sequence[bytes]:
        texts = page.records(self.archive.body(linked.sha256))
        if len(texts) != linked.rows:
            raise LandingFailed(f"it holds {len(texts)} records, but {linked.rows} were read")
        return [bytes(text) for text in texts]

    def _decoded(self, texts: Sequence[bytes]) -> Decoded:
        try:
            return self.decoder.records(texts)
        except Misfit as misfit:
            self.decoder = misfit.wider
            return self.decoder.records(texts)

    def _keys(self, texts: Sequence[bytes], decoded: Decoded, stitched: int) -> pa.Array:
        key, records = self.manifest.key, decoded.records
        if key is None:
            plain = ((row, canonical(texts[row])) for row in decoded.rows)
            return pa.array(list(self._ordinals(plain, stitched)), pa.string())
        if len(records) == 0:
            return pa.array([], pa.string())
        self.spellings.add((self.decoder.shape.fields[key].kind, records.field(key).type))
        return records.field(key).cast(pa.string())

    @property
    def keys_agree(self) -> bool:
        """Whether the last reading spelled all keys alike: 1 is "1.0" once a decimal was seen."""
        return len(self.spellings) <= 1

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


def contents(body: bytes) -> list[bytes]:
    """Return what tells a page's records apart where no field does: all that they say.

    A record that nothing can read is told apart by its bytes.
    """
    return [_content(bytes(text)) for text in page.records(body)]


def _content(text: bytes) -> bytes:
    try:
        return canonical(text)
    except (ValueError, ArithmeticError, RecursionError, TypeError):
        return text


def canonical(text: bytes) -> bytes:
    """Return a record in one spelling: keys sorted, numbers without trailing zeros.

    What is null stays apart from what is missing.
    """
    return CANONICAL.encode(json.loads(text, parse_float=_plain, parse_int=_plain))


def _plain(lexeme: str) -> Decimal:
    return Decimal(lexeme).normalize(EXACT)
