"""Adds rows of a workbook or of a database, which are in memory, to the table of a source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import duckdb
import pyarrow as pa

ROLES: Final = (
    "id", "number", "partner", "period", "amount", "currency", "quantity", "connection",
)  # fmt: skip
BATCH: Final = 20_000
TEXTS: Final = "FROM added"
NumberedTexts = tuple[int, tuple[str | None, ...]]
"""The number of a row, and its texts in the order of the columns."""


def add_rows(
    db: duckdb.DuckDBPyConnection,
    insert: Callable[[str], str],
    columns: dict[str, str],
    rows: Iterable[NumberedTexts],
) -> None:
    """Add rows with their numbers; the values are in the order of `columns`."""
    for batch in _batches(rows):
        table = {"row": pa.array([number for number, _values in batch], pa.int64())}
        values = zip(*(values for _number, values in batch), strict=True)
        by_role = dict(zip(columns, values, strict=True))
        nothing = [None] * len(batch)
        for role in ROLES:
            table[f"{role}_text"] = pa.array(by_role.get(role, nothing), pa.string())
        db.from_arrow(pa.table(table)).query("added", insert(TEXTS))


def _batches(rows: Iterable[NumberedTexts]) -> Iterator[Sequence[NumberedTexts]]:
    """Yield rows in lists of at most BATCH."""
    left = iter(rows)
    batch = list(islice(left, BATCH))
    while batch:
        yield batch
        batch = list(islice(left, BATCH))
