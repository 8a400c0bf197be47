"""Parquet: a file a table, every type as it is; for programs and for keeping."""

from pathlib import Path

from pyarrow import parquet

from pipelines.destinations.base import Destination, one_file_each
from pipelines.warehouse.published import Published, Table


def _write(source: Published, table: Table, file: Path) -> tuple[int, list[str]]:
    """Write a table; DECIMAL stays decimal, times are UTC."""
    rows = 0
    with parquet.ParquetWriter(file, table.columns, compression="zstd") as writer:
        for batch in source.batches(table.query):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows, []


PARQUET = Destination(
    name="parquet",
    description="A file a table, every type as it is: DECIMAL, times in UTC, dates, bytes.",
    deliver=one_file_each("parquet", _write),
)
