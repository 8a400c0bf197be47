"""The records that the tables hold already, told by the digest of their bytes as sent.

Looked up by the page in sorted arrays, 24 bytes a row. What is known is not decoded again. Not
here: what becomes of a record that is not (survey).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from pipelines.warehouse.database import exists, literal, quoted, scalar

WIDTH = 16  # bytes of a digest that are kept
Whole = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]  # a row for each record, its two halves
NOWHERE = -1
LOADED = 122_880  # rows at once: a row group of DuckDB's


def digests(texts: Iterable[Any]) -> Digests:
    """Return the digests of records as sent: XXH3, which takes a tenth of a SHA-256's time.

    They tell what changed; evidence are the pages of the archive, by their SHA-256.
    """
    joined = b"".join(map(xxhash.xxh3_128_digest, texts))
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


def as_binary(found: Digests) -> pa.Array:
    """Return digests as a column of bytes."""
    buffer = pa.py_buffer(np.ascontiguousarray(found))
    return pa.Array.from_buffers(pa.binary(WIDTH), len(found), [None, buffer]).cast(pa.binary())


@dataclass(frozen=True)
class Known:
    """The rows of one connection in a table, in the order of their digests; `ids` are rowids.

    `begins` is the first place of all digests that begin with the same bits, two or so.
    """

    first: npt.NDArray[np.uint64]
    second: npt.NDArray[np.uint64]
    ids: Whole
    begins: Whole

    def find(self, found: Digests) -> Whole:
        """Return the place among these of each digest; NOWHERE for one that is not known."""
        if not len(self.ids):
            return np.full(len(found), NOWHERE)
        places, last = self.begins[found[:, 0] >> self._shift], len(self.first) - 1
        behind = self.first[places] < found[:, 0]
        while behind.any():  # a few steps: a bisection would miss the processor's cache 20 times
            places = np.minimum(places + behind, last)
            behind &= (self.first[places] < found[:, 0]) & (places < last)
        same = (self.first[places] == found[:, 0]) & (self.second[places] == found[:, 1])
        return np.where(same, places, NOWHERE)

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - (len(self.begins).bit_length() - 1))

    def among(self, rowids: Whole) -> npt.NDArray[np.bool_]:
        """Tell of each of these rows whether its rowid is one of some."""
        return np.isin(self.ids, rowids)


def known(database: duckdb.DuckDBPyConnection, stream: str, connection: str) -> Known:
    """Return what a connection has in `current.<stream>`, loaded in parts: memory stays small."""
    table = quoted("current", stream)
    if not exists(database, "current", stream):
        return _sorted(np.empty((0, 2), np.uint64), np.empty(0, np.int64))
    # No parameter: DuckDB 1.5.5 copies a relation that has one, 3 s and 200 MB for a million rows.
    own = f"FROM {table} WHERE _connection = {literal(connection)}"
    count = scalar(database, f"SELECT count(*) {own}")
    found, ids, end = np.empty((count, 2), np.uint64), np.empty(count, np.int64), 0
    rows = database.sql(f"SELECT rowid AS id, _digest {own}")
    for batch in rows.to_arrow_reader(LOADED):
        begin, end = end, end + batch.num_rows
        digest = batch.column("_digest").cast(pa.binary(WIDTH))
        values = digest.buffers()[1].slice(digest.offset * WIDTH, len(digest) * WIDTH)
        found[begin:end] = np.frombuffer(values, np.uint64).reshape(-1, 2)
        ids[begin:end] = batch.column("id").to_numpy()
    return _sorted(found, ids)


def _sorted(found: Digests, ids: Whole) -> Known:
    first = np.ascontiguousarray(found[:, 0])
    order = np.argsort(first)
    first = first[order]
    bits = max(1, len(ids).bit_length() - 1)
    heads = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    begins = np.minimum(np.searchsorted(first, heads), max(0, len(first) - 1))
    return Known(first, found[order, 1], ids[order], begins)
