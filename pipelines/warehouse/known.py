"""The records that the tables hold already, told by the digest of their bytes as sent.

Looked up by the thousand in sorted arrays: 24 bytes a row. What is known is not decoded again. Not
here: what becomes of a record that is not (survey).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.warehouse.database import exists, quoted

WIDTH = 16  # bytes of a digest that are kept
Whole = npt.NDArray[np.int64]
NOWHERE = -1


def digests(texts: Iterable[Any]) -> list[bytes]:
    """Return the digests of records as sent, whole: cutting a million takes 0.4 s."""
    return [sha256(text).digest() for text in texts]


@dataclass(frozen=True)
class Known:
    """The rows of one connection in a table, in the order of their digests; `ids` are rowids."""

    first: npt.NDArray[np.uint64]
    second: npt.NDArray[np.uint64]
    ids: Whole

    def find(self, found: Sequence[bytes]) -> Whole:
        """Return the place among these of each digest; NOWHERE for one that is not known."""
        halves = np.frombuffer(b"".join(found), np.uint64).reshape(-1, 4)
        if not len(self.ids):
            return np.full(len(halves), NOWHERE)
        places = np.searchsorted(self.first, halves[:, 0])
        places[places == len(self.first)] = 0
        same = (self.first[places] == halves[:, 0]) & (self.second[places] == halves[:, 1])
        return np.where(same, places, NOWHERE)

    def among(self, rowids: Whole) -> npt.NDArray[np.bool_]:
        """Tell of each of these rows whether its rowid is one of some."""
        found = np.zeros(len(self.ids), np.bool_)
        if len(rowids):
            order = np.argsort(self.ids)
            found[order[np.searchsorted(self.ids, rowids, sorter=order)]] = True
        return found


def known(database: duckdb.DuckDBPyConnection, stream: str, connection: str) -> Known:
    """Return what a connection has in `current.<stream>`."""
    if not exists(database, "current", stream):
        return _sorted(b"", np.array([], np.int64))
    rows = database.sql(
        f"SELECT rowid AS id, _digest FROM {quoted('current', stream)} WHERE _connection = ?",
        params=[connection],
    ).to_arrow_table()
    digest = rows.column("_digest").cast(pa.binary(WIDTH)).combine_chunks()
    if not len(digest):
        return _sorted(b"", np.array([], np.int64))
    found = digest.buffers()[1].slice(digest.offset * WIDTH, len(digest) * WIDTH)
    return _sorted(found, rows.column("id").to_numpy())


def _halves(found: Any) -> npt.NDArray[np.uint64]:
    return np.frombuffer(found, np.uint64).reshape(-1, 2)


def _sorted(found: Any, ids: Whole) -> Known:
    halves = _halves(found)
    order = np.argsort(halves[:, 0])
    return Known(halves[order, 0], halves[order, 1], ids[order])
