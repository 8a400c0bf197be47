"""Exports tables of the published version: files in a new folder, or tables of a database."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
from xlsxwriter.exceptions import XlsxWriterException

from pipelines.app.export_dbt import FILE, write_sources
from pipelines.app.export_sql import write_database
from pipelines.app.export_table import ExportTable, list_tables
from pipelines.app.export_xlsx import write_workbook
from pipelines.app.progress import Progress
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import durable_rename, private_folder, sync_file
from pipelines.core.text import printable
from pipelines.metadata.locks import hold_lock

COPY: Final = "COPY ({query}) TO '{file}' ({options})"
DBT: Final = "dbt"
CSV: Final = "FORMAT csv, HEADER"
# Smaller than the default groups, which need more memory than `memory_limit`.
PARQUET: Final = "FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB'"
# With one thread, rows keep their order all the same, and DuckDB does not collect them in memory.
IN_BATCHES: Final = "SET preserve_insertion_order = false"
Row = dict[str, Any]


@dataclass(frozen=True)
class ExportRequest:
    """What to export to where.

    `target` is csv, parquet, xlsx, dbt (the description of the tables for a dbt project), or the
    name of an environment variable with a database URL. `tables` are `schema.table`, or a schema
    for all of its tables; without any, all of schema `current`. `folder` must be new or
    empty; without one it is in the home, and an export of the same version is replaced.
    """

    target: str
    tables: Sequence[str] = ()
    folder: Path | None = None


def _write_csv(table: ExportTable, file: Path) -> list[str]:
    return _copy(table, table.query(native=()), file, CSV)


def _write_parquet(table: ExportTable, file: Path) -> list[str]:
    return _copy(table, table.query(), file, PARQUET)


def _copy(table: ExportTable, query: str, file: Path, options: str) -> list[str]:
    path = str(file).replace("'", "''")
    table.db.execute(COPY.format(query=query, file=path, options=options))
    return []


FORMATS: Final[dict[str, Callable[[ExportTable, Path], list[str]]]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "xlsx": write_workbook,
}
"""Each writes a table to a file, and returns the columns in which numbers are text there."""


def export_tables(session: AppSession, request: ExportRequest, progress: Progress) -> list[Row]:
    """Export tables of the published version; return one row for each.

    The files appear together in a new folder, or not at all. Raises ConfigurationError for what is
    unknown, StorageFailed, VersionNotFound.
    """
    is_file = request.target in {*FORMATS, DBT}
    url = None if is_file else _database_url(request)
    version = session.warehouse.require_published()
    default = session.home.exports / f"{version.path.stem}-{request.target}"
    with (
        hold_lock(session.metadata.locks, "export", on_wait=progress.note),
        closing(session.warehouse.open(version.number)) as db,
    ):
        tables = _choose(list_tables(db), request.tables)
        if url is not None:
            write_database(tables, request.target, url, session.redactor)
            return [_row(table, f"{table.name} in {request.target}") for table in tables]
        db.execute(IN_BATCHES)
        with _new_folder(request.folder, default) as (part, folder):
            if request.target == DBT:
                write_sources(tables, part / FILE)
                return [_row(table, str(folder / FILE)) for table in tables]
            return [_write(table, request.target, part, folder) for table in tables]


def _database_url(request: ExportRequest) -> str:
    """Return the database URL that a target names. Raises ConfigurationError."""
    url = os.environ.get(request.target)
    if not url:
        # A URL that was given instead of a name is a secret.
        named = f" `{request.target}`" if request.target.isidentifier() else ""
        raise ConfigurationError(
            f"Unknown format{named}. Use {', '.join([*FORMATS, DBT])}, or the name of an "
            "environment variable that holds a database URL. Nothing was exported."
        )
    if request.folder:
        raise ConfigurationError(
            f"--folder is for files, but {request.target} names a database. Nothing was exported."
        )
    return url


def _choose(known: Mapping[str, ExportTable], titles: Sequence[str]) -> list[ExportTable]:
    """Return the tables with these titles (none: all of schema `current`)."""
    schemas = {table.schema for table in known.values()}
    if unknown := ", ".join(title for title in titles if title not in {*known, *schemas}):
        raise ConfigurationError(
            f"The published version has no table `{unknown}`. Nothing was exported. Possible "
            f"tables: {', '.join(known)}."
        )
    found = (
        table.title
        for title in titles or ["current"]
        for table in known.values()
        if title in {table.title, table.schema}
    )
    return [known[title] for title in dict.fromkeys(found)]


@contextmanager
def _new_folder(given: Path | None, default: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a private folder to write to, and the one that it becomes at the end of the block.

    After an error there is no folder. An earlier export in the default folder is replaced.
    """
    folder = given.expanduser().absolute() if given else default
    part, old = (folder.with_name(f".{folder.name}.{ending}") for ending in ("part", "old"))
    with _failure_named(folder):
        if given and folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise ConfigurationError(
                f"The folder {folder} is not empty. Nothing was exported.",
                "Name a folder that does not exist.",
            )
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        private_folder(folder.parent)
        try:
            yield private_folder(part), folder
            if folder.exists():
                folder.rename(old)
            durable_rename(part, folder)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _failure_named(folder: Path) -> Iterator[None]:
    """Raise StorageFailed for what cannot be read or written."""
    try:
        yield
    except (duckdb.Error, OSError, XlsxWriterException) as error:
        raise StorageFailed(
            f"The export to {folder} failed: {printable(error)}. It is not there, or as it was "
            "before; the published version is untouched.",
            "Make room or correct the permissions, then run `partner-sync export` again.",
        ) from error


def _write(table: ExportTable, target: str, part: Path, folder: Path) -> Row:
    file = f"{table.name}.{target}"
    numbers_as_text = FORMATS[target](table, part / file)
    sync_file(part / file)
    return _row(table, str(folder / file), numbers_as_text)


def _row(table: ExportTable, place: str, numbers_as_text: Sequence[str] = ()) -> Row:
    found = {"table": table.title, "rows": table.count(), "exported_to": place}
    return found | {"numbers_as_text": list(numbers_as_text)}
