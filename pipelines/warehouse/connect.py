"""Opens DuckDB files. Every connection of the project is made here, with the same settings."""

import os
import re
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.errors import LockHeld, StorageFailed, VersionNotFound
from pipelines.core.text import printable

STORAGE_VERSION: Final = "v1.5.0"  # every DuckDB from 1.5 on can read it, whichever wrote it
THREADS: Final = 1  # a second thread costs 40 % more CPU seconds on lists of this size
LOCKED: Final = "Could not set lock"  # what DuckDB says; it has no error class for it
SETTINGS: Final = """
SET TimeZone = 'UTC';
SET enable_progress_bar = false;
"""


def spill_folder(file: Path) -> Path:
    """Return where this process puts what does not fit into memory while `file` is open.

    DuckDB's own names collide where two processes share a folder. It removes the folder on close.
    """
    return file.with_name(f".{file.name.lstrip('.')}.{os.getpid()}.spill")


def connect(file: Path, memory_limit: str, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file; create it where it does not exist and may be written.

    Raises VersionNotFound, LockHeld where another process writes it, StorageFailed where it is
    damaged or the disk refuses.
    """
    if read_only and not file.exists():
        raise VersionNotFound(
            f"The version file {file} does not exist.",
            "Run `partner-sync versions list`, then `partner-sync versions rollback` to one of it.",
        )
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "threads": THREADS,
        "temp_directory": str(spill_folder(file)),
        "storage_compatibility_version": STORAGE_VERSION,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        database = duckdb.connect(file, read_only=read_only, config=config)
    except duckdb.Error as error:
        raise _as_ours(file, error) from error
    database.execute(SETTINGS)
    return database


def attach_read_only(database: duckdb.DuckDBPyConnection, file: Path, name: str) -> None:
    """Attach a second file under a name of ours."""
    path = str(file).replace("'", "''")
    database.execute(f"ATTACH '{path}' AS {name} (READ_ONLY)")


def _as_ours(file: Path, error: duckdb.Error) -> LockHeld | StorageFailed:
    text = printable(error)
    if LOCKED in str(error):
        process = re.search(r"\(PID \d+\)", text)
        return LockHeld(
            f"{file} is open for writing in another process {process[0] if process else ''}."
            " It cannot be read meanwhile. Its content is not affected.",
            "Close that program, or open the file read-only there.",
        )
    return StorageFailed(
        f"{file} cannot be opened: {text}. No other file is affected.",
        "Run `partner-sync verify`. If the file is damaged, run `partner-sync versions rollback`.",
    )
