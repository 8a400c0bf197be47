"""The tables of a source beside the model: every version, its times, and every value of it.

Here: the comparison. Not here: what there should be (history_model), how values are found (walked).
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb

from pipelines.warehouse import registry
from pipelines.warehouse.database import exists
from tests.run.nights import Source
from tests.warehouse.history_model import Model
from tests.warehouse.walked import Walk, sent

Rows = Counter[tuple[Any, ...]]


def assert_equal(writer: duckdb.DuckDBPyConnection, source: Source, model: Model) -> None:
    """Assert that the tables hold the versions of a model, those that ended among them."""
    open_times = ("first_seen", "changed_at", "missing_since")
    assert _rows(writer, source, "current", open_times) == Counter(
        (
            source.key and each.key,
            each.record["n"],
            each.first_seen,
            each.valid_from,
            each.missing_since and each.missing_since[0],
        )
        for each in model.there.values()
    )
    past_times = ("first_seen", "valid_from", "valid_to", "why")
    assert _rows(writer, source, "past", past_times) == Counter(
        (
            source.key and each.key,
            each.record["n"],
            each.first_seen,
            each.valid_from,
            each.valid_to,
            each.why,
        )
        for each in model.past
    )
    _walk(writer, source, model)


def _rows(
    writer: duckdb.DuckDBPyConnection, source: Source, schema: str, times: Sequence[str]
) -> Rows:
    if not exists(writer, schema, source.stream):
        return Counter()
    names = ", ".join((source.key or "NULL", "n", *times))
    query = f"SELECT {names} FROM {schema}.{source.stream} WHERE _connection = ?"
    return Counter(writer.execute(query, [source.connection]).fetchall())


def _walk(writer: duckdb.DuckDBPyConnection, source: Source, model: Model) -> None:
    """Find every value of the records that are there; without a key, nothing says where."""
    known = registry.registered(writer, source.stream)
    if source.key is None or known is None:
        return
    walk = Walk(writer, source.stream, known.names, connection=source.connection)
    for version in model.there.values():
        walk.record(sent(json.dumps(version.record)))
