"""Exports tables of the published version: files in a new folder, or tables of a database.

Also the published books as one file, to which every row of both sides can be added.
"""

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
from pipelines.core.text import printable, quote_text
from pipelines.finance.doubt import NOT_MAPPED
from pipelines.finance.mapping import REMEDY
from pipelines.finance.reconciled import open_published, require_books
from pipelines.finance.sql import open_for_queries
from pipelines.metadata.locks import hold_lock
from pipelines.versions.catalog import comment, read_comments
from pipelines.versions.export_table import ExportColumn, ExportTable, describe_sources, list_tables
from pipelines.versions.export_xlsx import write_workbook
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.memory_limit import is_memory_refused

DBT: Final = "dbt"
BOOKS: Final = "books"
SOURCES: Final = "sources.yml"
CSV: Final = "FORMAT csv, HEADER"
# Smaller than the default groups, which need more memory than `memory_limit`.
PARQUET: Final = "FORMAT parquet, ROW_GROUP_SIZE_BYTES '16MB'"
# With one thread, rows keep their order all the same, and DuckDB does not collect them in memory.
COPY: Final = "SET preserve_insertion_order = false; COPY ({}) TO '{}' ({})"

RECORDS: Final = ("used_records", "billed_lines")  # views of `partner-sync sql`
ADD_RECORDS: Final = "CREATE TABLE exported.finance.{name} AS FROM temp.{name}"


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
    *,
    records: bool = False,
) -> list[Row]:
    """Export tables of the published version; return one row for each.

    `target` is csv, parquet, xlsx, dbt (the description of the tables for a dbt project), books
    (the published books as one file, with tables of all `records`), or the name of an environment
    variable with a database URL. `tables` are `schema.table`, or a schema
    for all of its tables; without any, all of schema `current`. The files appear together in
    `folder`, which must be new or empty, or not at all; without one they are in the home, and
    replace an export of the same version.

    Raises ConfigurationError for what is unknown, PartnerSyncError.
    """
    if target == BOOKS:
        if tables:
            raise ConfigurationError("--table is not for `export books`. Nothing was exported.")
        return _export_books(session, folder, records=records)
    if records:
        raise ConfigurationError("--records is for `export books`. Nothing was exported.")
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


def _export_books(session: AppSession, folder: Path | None, *, records: bool) -> list[Row]:
    """Write the published books to a file, with names, and with tables of all records if asked."""
    require_books(session)
    books_folder = BooksFolder(session.warehouse)
    books = books_folder.published()
    if books is None:  # which `require_books` refuses
        raise ValueError("there are no books")
    with hold_lock(session.metadata.locks, "export"), open_for_queries(session.warehouse) as db:
        default = session.home.exports / f"v{books.version:08}-{BOOKS}"
        with _new_folder(folder, default) as (part, whole):
            file = part / f"{BOOKS}.duckdb"
            books_folder.copy(books, file)
            exported_to = str(whole / file.name)
            rows: list[Row] = [_book_row(BOOKS, None, exported_to)]
            if records:
                for name, count in _add_records(db, file).items():
                    rows.append(_book_row(f"finance.{name}", count, exported_to))
            sync_file(file)
            return rows


def _add_records(db: duckdb.DuckDBPyConnection, file: Path) -> dict[str, int]:
    """Add tables of all records to exported books; return how many rows each has."""
    db.execute(f"ATTACH {quote_text(str(file))} AS exported")
    # So that DuckDB does not collect the rows in memory.
    db.execute("SET preserve_insertion_order = false")
    counts = {}
    with stop.woken(db.interrupt):
        for name in RECORDS:
            try:
                ((rows,),) = db.execute(ADD_RECORDS.format(name=name)).fetchall()
            except duckdb.CatalogException as error:
                raise ConfigurationError(f"{NOT_MAPPED} Nothing was exported.", REMEDY) from error
            counts[name] = rows
        ((path,),) = db.execute("SELECT current_setting('search_path')").fetchall()
        db.execute(f"SET search_path = {quote_text(f'exported.finance,{path}')}")
        comment(db, read_comments("pipelines.versions", "pipelines.finance"))
        db.execute(f"SET search_path = {quote_text(path)}")
        db.execute("DETACH exported")
    return counts


def _book_row(table: str, rows: int | None, place: str) -> Row:
    return {"table": table, "rows": rows, "exported_to": place, "numbers_as_text": []}


def _database_url(target: str, folder: Path | None) -> str:
    """Return the database URL that a target names. Raises ConfigurationError."""
    url = os.environ.get(target)
    if not url:
        # A URL that was given instead of a name is a secret.
        named = f" `{target}`" if target.isidentifier() else ""
        raise ConfigurationError(
            f"Unknown format{named}. Use {', '.join([*FORMATS, DBT, BOOKS])}, or the name of an "
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
