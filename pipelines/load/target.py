"""Where a scan is loaded: one list (a stream of a connection) in a version that is being built."""

from dataclasses import dataclass
from typing import Any

import duckdb

from pipelines.archive.scan_file import ScanHeader, SealedScan
from pipelines.core.text import quote_identifier


@dataclass(frozen=True)
class Target:
    """A database and the scan that is loaded into it."""

    db: duckdb.DuckDBPyConnection
    scan: SealedScan

    @property
    def header(self) -> ScanHeader:
        """Which list the scan is of."""
        return self.scan.header

    def run(self, query: str, table: str | None = None, **values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as `execute` does; return its rows."""
        rows: list[tuple[Any, ...]] = self.execute(query, table, **values).fetchall()
        return rows

    def execute(self, query: str, table: str | None = None, **values: Any) -> Any:
        """Run a statement; return the cursor.

        `{history}` becomes the table (default: the stream's own), `{name}` the value of that name
        as it is. `$name` is bound; connection, stream and scan_id have values always.
        """
        header = self.header
        history = f"history.{quote_identifier(table or header.stream)}"
        values |= {"connection": header.connection, "stream": header.stream}
        values |= {"scan_id": header.scan_id}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        return self.db.execute(query.format(history=history, **values), bound or None)
