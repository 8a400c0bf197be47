"""Known records are found by their digests, whatever bits these begin with."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.warehouse import known
from pipelines.warehouse.database import append
from pipelines.warehouse.known import NOWHERE, WIDTH, as_binary

HALVES = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
DIGESTS = st.lists(st.tuples(HALVES, HALVES), unique_by=lambda each: each[0], max_size=60)


def halves(digests: list[tuple[int, int]]) -> known.Digests:
    return np.array(digests, np.uint64).reshape(-1, 2)


@given(there=DIGESTS, others=DIGESTS)
def test_each_digest_is_found_where_its_row_is(
    there: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    with duckdb.connect() as database:
        database.execute("CREATE SCHEMA current")
        database.execute("CREATE TABLE current.things (_connection VARCHAR, _digest BLOB)")
        for connection, digests in (("other", others), ("ours", there)):
            named = pa.repeat(connection, len(digests))
            rows = pa.table({"_connection": named, "_digest": as_binary(halves(digests))})
            append(database, "current.things", rows)
        found = known.known(database, "things", "ours")
    rowids = {each: len(others) + place for place, each in enumerate(there)}
    asked = there + others
    places = found.find(halves(asked))
    assert [found.ids[place] if place != NOWHERE else None for place in places] == [
        rowids.get(each) for each in asked
    ]


@pytest.mark.parametrize("text", [b"", b"{}", b'{"id": 1}' * 100])
def test_a_digest_has_its_width_and_is_of_all_bytes(text: bytes) -> None:
    one, other = known.digests([text, text + b" "])
    assert as_binary(halves([tuple(one.tolist())])).to_pylist() == [one.tobytes()]
    assert len(one.tobytes()) == WIDTH
    assert one.tolist() != other.tolist()
