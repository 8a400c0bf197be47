"""Here: one small DuckDB file whose views read the published files of many homes.

The views name the links that each home publishes at, so they show whatever is published when they
are read: in one query, one whole version and one whole file of books of each home. Not here: how
such a file is read (`published_tables`), and anything that a home itself shows (`export`,
`finance.sql`).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import duckdb

from pipelines.app.published_tables import Name, PublishedFile, published_files
from pipelines.app.session import open_session
from pipelines.config.home import Home
from pipelines.config.homes import find_homes
from pipelines.config.settings import load_settings
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import durable_rename, remove, sync_file
from pipelines.core.text import printable, quote_identifier, quote_text
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row, is_locked

HOME: Final = "_home"  # the column that says which home a row is of
CREATE_HOMES: Final = """
CREATE SCHEMA meta;
CREATE TABLE meta.homes (home VARCHAR, folder VARCHAR, is_published BOOLEAN);
"""
IS_CATALOG: Final = "SELECT count(homes.home) FROM meta.homes AS homes"
# A view keeps no types: after a version with another type, DuckDB would round decimals to the scale
# of another home.
CHECKED: Final = """
CASE
    WHEN typeof(found.{column}) = {type} THEN CAST(found.{column} AS {common})
    ELSE error({message})
END AS {column}"""
OTHER_TYPE: Final = (
    "{table}.{column} of home {home} has another type since this file was written. Run "
    "`partner-sync catalog` again."
)
NOT_PUBLISHED: Final = "Nothing is published: it is in no table."


def write_catalog(file: Path, folder: Path) -> list[Row]:
    """Write the catalog of the homes in a folder; return a row for each home.

    An earlier catalog is replaced. Raises ConfigurationError for a folder without homes, one home
    with two names, wrong settings, and a file that is no catalog; StorageFailed for a home whose
    files cannot be read. Nothing is written then.
    """
    homes = find_homes(folder)
    _require_different(homes)
    _require_own(file)
    files = list[PublishedFile]()
    rows = list[Row]()
    for name, home in homes.items():
        _bring(home)
        of_home = list(published_files(name, home))
        files += of_home
        tables = {table for published in of_home for table in published.columns}
        rows.append(
            {
                "home": name,
                "folder": str(home.root),
                "tables": len(tables),
                "message": "" if of_home else NOT_PUBLISHED,
            }
        )
    part = file.with_name(f".{file.name}.part")
    remove(part)
    try:
        with closing(duckdb.connect(part)) as db:
            _write(db, files, rows)
        sync_file(part)
        durable_rename(part, file)
    except (duckdb.Error, OSError) as error:
        remove(part)
        raise StorageFailed(
            f"The catalog {file} cannot be written: {printable(error)}.",
            "Correct what it names, then run the same command again.",
        ) from error
    return rows


def _require_different(homes: Mapping[str, Home]) -> None:
    """Raise ConfigurationError if two names lead to one home: its rows would count twice."""
    names = dict[str, str]()
    for name, home in homes.items():
        other = names.setdefault(os.path.realpath(home.root), name)  # also of a link to itself
        if other != name:
            raise ConfigurationError(
                f"{printable(other)} and {printable(name)} are one home: each of its rows would "
                "count twice. Nothing was written.",
                "Remove the link from the folder of homes.",
            )


def _bring(home: Home) -> None:
    """Bring what is published to this machine, if a bucket keeps the files of a home.

    Raises ConfigurationError, StorageFailed.
    """
    if load_settings(home).files is None:
        return
    with open_session(home) as session:
        store = session.warehouse.store
        for published in (
            session.warehouse.published(),
            BooksFolder(session.warehouse).published(),
        ):
            if published is not None:
                store.get(published.path)


def _require_own(file: Path) -> None:
    """Raise ConfigurationError if a file is there that is no catalog."""
    if not file.exists():
        return
    try:
        with closing(duckdb.connect(file, read_only=True)) as db:
            db.execute(IS_CATALOG)
    except duckdb.Error as error:
        if is_locked(error):
            raise ConfigurationError(
                f"{file} is open for writing in another program. Nothing was written.",
                "Close it there, or open it with `duckdb -readonly`.",
            ) from None
        raise ConfigurationError(
            f"{file} exists, and is no catalog. Nothing was written.",
            "Name another file.",
        ) from None


def _write(
    db: duckdb.DuckDBPyConnection, files: Sequence[PublishedFile], rows: Sequence[Row]
) -> None:
    db.execute(CREATE_HOMES)
    for row in rows:
        home = quote_text(row["home"])
        folder = quote_text(row["folder"])
        db.execute(f"INSERT INTO meta.homes VALUES ({home}, {folder}, {not row['message']})")
    names = dict.fromkeys(name for file in files for name in file.columns)
    for schema in dict.fromkeys(schema for schema, _table in names):
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_identifier(schema)}")
    for name in names:
        having = [file for file in files if name in file.columns]
        schema, table = map(quote_identifier, name)
        db.execute(f"CREATE VIEW {schema}.{table} AS {_rows_of_all(name, having)}")


def _rows_of_all(name: Name, files: Sequence[PublishedFile]) -> str:
    """Return a query of the rows of a table or view of all homes, with their types made common."""
    types = dict[str, list[str]]()
    for file in files:
        for column, column_type in file.columns[name].items():
            types.setdefault(column, []).append(column_type)
    common = {column: common_type(found) for column, found in types.items()}
    return " UNION ALL ".join(_rows_of_home(name, file, common) for file in files)


def _rows_of_home(name: Name, file: PublishedFile, common: dict[str, str]) -> str:
    own = file.columns[name]
    shown = [f"{quote_text(file.home)} AS {HOME}"]
    for column, wanted in common.items():
        quoted = quote_identifier(column)
        if column not in own:
            shown.append(f"CAST(NULL AS {wanted}) AS {quoted}")
            continue
        message = OTHER_TYPE.format(table=name[1], column=column, home=file.home)
        terms = {
            "column": quoted,
            "type": quote_text(own[column]),
            "common": wanted,
            "message": quote_text(message),
        }
        shown.append(CHECKED.format(**terms))
    return f"SELECT {', '.join(shown)} FROM ({file.query(name)}) AS found"


def common_type(types: Iterable[str]) -> str:
    """Return the type that holds every value of these types exactly.

    Decimals get the largest scale; DuckDB's own choice for a UNION would round. A value with too
    many digits for that is an error when it is read. Other types that differ become text.
    """
    different = set(types)
    if len(different) == 1:
        return different.pop()
    scales = [_scale(each) for each in different]
    if None not in scales:
        return f"DECIMAL(38,{max(scale for scale in scales if scale is not None)})"
    return "VARCHAR"


def _scale(column_type: str) -> int | None:
    """Return the digits behind the point of a type of numbers; None for any other type."""
    if column_type in {"INTEGER", "BIGINT", "HUGEINT"}:
        return 0
    name, _, size = column_type.removesuffix(")").partition("(")
    return int(size.partition(",")[2]) if name == "DECIMAL" else None
