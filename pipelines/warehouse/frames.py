"""Query results as pandas frames on Arrow types: a DECIMAL stays every digit that it is."""

from collections.abc import Mapping, Sequence

import duckdb
import pandas as pd
import pyarrow as pa


def frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a frame (`.df()` would turn DECIMAL into float64)."""
    converted: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return converted


def query(database: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    """Return a query's answer."""
    return frame(database.sql(sql).to_arrow_table())


def from_rows(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return records of ours as a frame of the same kind."""
    return frame(pa.Table.from_pylist([dict(row) for row in rows]))
