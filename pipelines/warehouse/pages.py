"""A manifest's pages as columns: decoded one at a time, each record with what identifies it.

Every complaint about a page names the stream, the offset and the archived file. What becomes of the
records is the fold's.
"""

import json
from collections import Counter
from collections.abc import Iterator
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
from pipelines.warehouse.decode import Decoder, Misfit
from pipelines.warehouse.schema import Kind, identified_by

AT_ONCE = 16  # a few thousand records: enough for DuckDB's pace, little to hold
EXACT = Context(prec=MAX_PREC)  # the default would round at 28 digits
CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="number")


@dataclass(frozen=True)
class Read:
    """One page decoded; `keys` identify its records."""

    page: LinkedPage
    body: bytes
    records: pa.StructArray
    keys: pa.Array

    def digests(self) -> pa.Array:
        """Return what tells two readings of a record apart, good for this process only."""
        return pa.array([hash(bytes(record)) for record in page.records(self.body)], pa.int64())


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
                body = self.archive.body(linked.sha256)
                records = self._decoded(body)
                yield Read(linked, body, records, self._keys(body, records, rows))
            except LandingFailed as error:
                raise LandingFailed(
                    f"{self.manifest.stream}: page at offset {linked.offset}: {error}. The stream "
                    f"keeps its last published rows; the page is archived as {linked.sha256}."
                ) from None

    def _decoded(self, body: bytes) -> pa.StructArray:
        try:
            return self.decoder.records(body)
        except Misfit as misfit:
            self.decoder = Decoder(identified_by(misfit.shape, self.manifest.key))
            return self.decoder.records(body)

    def _keys(self, body: bytes, records: pa.StructArray, stitched: int) -> pa.Array:
        key = self.manifest.key
        if key is None:
            return pa.array(list(self._ordinals(canonical(body), stitched)), pa.string())
        if len(records) == 0:
            return pa.array([], pa.string())
        if records.type.get_field_index(key) < 0 or records.field(key).null_count:
            raise LandingFailed(f"a record has no {key}, which identifies the stream's records")
        if pa.types.is_nested(records.field(key).type):
            raise LandingFailed(f"{key} is an object or a list and identifies nothing")
        self.spellings.add((self.decoder.shape.fields[key].kind, records.field(key).type))
        return records.field(key).cast(pa.string())

    @property
    def keys_agree(self) -> bool:
        """Whether the last reading spelled all keys alike: 1 is "1.0" once a decimal was seen."""
        return len(self.spellings) <= 1

    def _ordinals(self, records: list[bytes], stitched: int) -> Iterator[str]:
        """Yield what identifies records without a key: their content, and which of its equals.

        The stitched rows are counted through the chain. The others were read again, or are in no
        chain: they count from what is stitched so far, or from nothing, so that no reading of a
        record makes another of it. There are as many equals as any one view of the list held.
        """
        others: Counter[str] = Counter()
        for row, record in enumerate(records):
            digest = sha256(record).hexdigest()
            (self.equals if row < stitched else others)[digest] += 1
            before = self.equals[digest] if stitched else 0
            yield f"{digest}.{before + others[digest]}"


def contents(body: bytes) -> list[bytes]:
    """Return what tells a page's records apart where no field does: all that they say.

    A record that nothing can read is told apart by its bytes.
    """
    try:
        return canonical(body)
    except (ValueError, ArithmeticError, RecursionError):
        return [bytes(record) for record in page.records(body)]


def canonical(body: bytes) -> list[bytes]:
    """Return a page's records in one spelling: keys sorted, numbers without trailing zeros.

    What is null stays apart from what is missing.
    """
    plain = json.loads(body, parse_float=_plain, parse_int=_plain)
    return [CANONICAL.encode(record) for record in plain["data"]]


def _plain(lexeme: str) -> Decimal:
    return Decimal(lexeme).normalize(EXACT)
