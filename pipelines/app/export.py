"""Exports tables of the published version: files in a new folder, or tables of a database."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import duckdb

from pipelines.app.export_sql import write_database
from pipelines.app.session import AppSession
from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import durable_rename, private_folder, remove, sync_file
from pipelines.core.person import expand_user
from pipelines.core.text import printable
from pipelines.finance.reconciled import open_published
from pipelines.metadata.locks import hold_lock
from pipelines.versions.export_table import ExportColumn, ExportTable, describe_sources, list_tables
from pipelines.versions.export_xlsx import write_workbook
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.memory_limit import is_memory_refused

DBT: Final = "dbt"
SOURCES: Final = "sources.yml"
CSV: Final = "FORMAT csv, HEADER"
# Smaller than the default groups, which need more memory than `memory_limit`.
PARQUET: Final = "FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB'"
# With one thread, rows keep their order all the same, and DuckDB does not collect them in memory.
COPY: Final = "SET preserve_insertion_order = false; COPY ({}) TO '{}' ({})"


def _copy(
    options: str, expression: Callable[[ExportColumn], str], table: ExportTable, file: Path
) -> list[str]:
    path = str(file).replace("'", "''")
    with stop.woken(table.db.interrupt):
        table.db.execute(COPY.format(table.query(expression), path, options))
    return []


FORMATS: Final[dict[str, Callable[[ExportTable, Path], list[str]]]] = {
    "csv": partial(_copy, CSV, lambda column: column.text),
    "parquet": partial(_copy, PARQUET, lambda column: column.value),
    "xlsx": write_workbook,
}
"""Each writes a table to a file, and returns the columns in which numbers are text there."""


def export_tables(
    session: AppSession,
    target: str,
    tables: Sequence[str] = (),
    folder: Path | None = None,
) -> list[Row]:
    """Export tables of the published version; return one row for each.

    `target` is csv, parquet, xlsx, dbt (the description of the tables for a dbt project), or the
    name of an environment variable with a database URL. `tables` are `schema.table`, or a schema
    for all of its tables; without any, all of schema `current`. The files appear together in
    `folder`, which must be new or empty, or not at all; without one they are in the home, and
    replace an export of the same version.

    Raises ConfigurationError for what is unknown, PartnerSyncError.
    """
    url = None if target in {*FORMATS, DBT} else _database_url(target, folder)
    with (
        hold_lock(session.metadata.locks, "export"),
        open_published(session) as (version, db),
    ):
        default = session.home.exports / f"{version.path.stem}-{target}"
        chosen = _choose(list_tables(db), tables)
        if url is not None:
            write_database(chosen, target, url, session.redactor)
            return [_row(table, f"{table.name} in {target}") for table in chosen]
        with _new_folder(folder, default) as (part, whole):
            if target == DBT:
                # JSON is YAML.
                document = json.dumps(describe_sources(chosen), indent=2)
                (part / SOURCES).write_text(document, encoding="utf-8")
                return [_row(table, str(whole / SOURCES)) for table in chosen]
            return [_write(table, target, part, whole) for table in chosen]


def _database_url(target: str, folder: Path | None) -> str:
    """Return the database URL that a target names. Raises ConfigurationError."""
    url = os.environ.get(target)
    if not url:
        # A URL that was given instead of a name is a secret.
        named = f" `{target}`" if target.isidentifier() else ""
        raise ConfigurationError(
            f"Unknown format{named}. Use {', '.join([*FORMATS, DBT])}, or the name of an "
            "environment variable that holds a database URL. Nothing was exported."
        )
    if folder:
        raise ConfigurationError(
            f"--folder is for files, but {target} names a database. Nothing was exported."
        )
    return url


def _choose(known: Sequence[ExportTable], titles: Sequence[str]) -> list[ExportTable]:
    """Return the tables with these titles (none: all of schema `current`)."""
    if not titles:
        return [table for table in known if table.schema == "current"]
    # By title: a table that is named twice is exported once.
    chosen = dict[str, ExportTable]()
    for title in titles:
        named = [table for table in known if title in {table.title, table.schema}]
        if not named:
            raise ConfigurationError(
                f"The published version has no table `{title}`. Nothing was exported. Possible "
                f"tables: {', '.join(table.title for table in known)}."
            )
        for table in named:
            chosen[table.title] = table
    return list(chosen.values())


@contextmanager
def _new_folder(given: Path | None, default: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a private folder to write to, and the one that it becomes at the end of the block.

    After an error there is no new folder. An earlier export in the default folder is replaced in
    the end. Raises StorageFailed for what cannot be read or written.
    """
    folder = expand_user(given).absolute() if given else default
    part = folder.with_name(f".{folder.name}.part")
    before = folder.with_name(f".{folder.name}.before")
    try:
        if given and folder.exists() and (folder.is_file() or any(folder.iterdir())):
            raise ConfigurationError(
                f"The folder {folder} is not empty. Nothing was exported.",
                "Name a folder that does not exist.",
            )
        remove(part)
        remove(before)
        private_folder(folder.parent)
        yield private_folder(part), folder
        # In two steps, so that after a kill nothing that is not whole has the name of the folder.
        if folder.exists():
            durable_rename(folder, before)
        durable_rename(part, folder)
    except (duckdb.Error, OSError) as error:
        stop.raise_if_requested()
        if is_memory_refused(error):
            # `open_session` explains it, with the setting to change.
            raise
        raise StorageFailed(
            f"The export to {folder} failed: {printable(error)}. No file of it was kept. Analysts "
            "still see the published version.",
            "Make room or correct the permissions, then run `partner-sync export` again.",
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


def _write(table: ExportTable, target: str, part: Path, folder: Path) -> Row:
    file = f"{table.name}.{target}"
    numbers_as_text = FORMATS[target](table, part / file)
    sync_file(part / file)
    return _row(table, str(folder / file), numbers_as_text)


def _row(table: ExportTable, place: str, numbers_as_text: Sequence[str] = ()) -> Row:
    return {
        "table": table.title,
        "rows": table.count(),
        "exported_to": place,
        "numbers_as_text": list(numbers_as_text),
    }
