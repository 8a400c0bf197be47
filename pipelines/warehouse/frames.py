"""Query results as pandas frames on Arrow types: a DECIMAL stays every digit that it is.

For analysts: `frames.connect()` opens what is published, read-only, and `frame(sql)` asks it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pandas as pd

from pipelines.settings import Home
from pipelines.warehouse import published


@dataclass(frozen=True)
class Warehouse:
    """One published version, open for reading until it is closed."""

    database: duckdb.DuckDBPyConnection
    version: str

    def frame(self, sql: str, values: Sequence[object] = ()) -> pd.DataFrame:
        """Return a query's answer; each `?` in it stands for one of the values."""
        return query(self.database, sql, values)

    def close(self) -> None:
        """Let go of the version."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def connect(home: Path | str | None = None) -> Warehouse:
    """Open the version that is published now in a home, else in `PARTNER_SYNC_HOME`.

    Raises NothingPublished where nothing is published. It needs no credentials and no settings.
    """
    place = Home.usual() if home is None else Home(Path(home).expanduser())
    source = published.connected(place)
    return Warehouse(source.database, source.version)


def query(
    database: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()
) -> pd.DataFrame:
    """Return a query's answer."""
    table = database.sql(sql, params=list(values) or None).to_arrow_table()
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)  # `.df()`: DECIMAL to float64
    return frame
