"""Rewrites a DuckDB file whose deleted rows leave much of it free."""

from contextlib import closing
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.warehouse.connect import attach_read_only, connect

FREE_SHARE: Final = 3  # compact from one third free on
SMALLEST_BLOCKS: Final = 64  # 16 MB: below that there is nothing to gain
BLOCKS = """
SELECT size.total_blocks, size.free_blocks
FROM pragma_database_size() AS size
WHERE size.database_name = current_database()
"""
COPY = "COPY FROM DATABASE sparse TO {}"


def is_sparse(database: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a third of a file is free, and the file is not small."""
    total, free = database.execute(BLOCKS).fetchall()[0]
    return bool(total >= SMALLEST_BLOCKS and free * FREE_SHARE >= total)


def compact(file: Path, memory_limit: str) -> None:
    """Rewrite a file that nobody has open, with its tables, views, macros and comments.

    Without room for it the file stays as it is. Raises StorageFailed where it cannot be opened.
    """
    part = file.with_name(f"{file.name}.compacted")
    try:
        _rewrite(file, part, memory_limit)
    except duckdb.Error:
        part.unlink(missing_ok=True)
    else:
        part.replace(file)


def _rewrite(file: Path, part: Path, memory_limit: str) -> None:
    with closing(connect(part, memory_limit)) as database:
        attach_read_only(database, file, "sparse")
        name = database.execute("SELECT current_database()").fetchall()[0][0]
        database.execute(COPY.format(quote_identifier(name)))
        database.execute("DETACH sparse")
        database.execute("CHECKPOINT")
