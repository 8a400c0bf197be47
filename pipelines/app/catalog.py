"""Here: one small DuckDB file whose views read the published files of many homes.

The views name the links that each home publishes at, so they show whatever is published when they
are read. They read tables, each of one whole version or of one whole file of books. Not here:
anything that a home itself shows (`export`, `finance.sql`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import durable_rename, remove, sync_file
from pipelines.core.text import printable, quote_identifier, quote_text
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row, is_locked
from pipelines.warehouse.version_files import Warehouse

HOME: Final = "_home"  # the column that says which home a row is of
COLUMNS: Final = """
SELECT columns.table_schema, columns.table_name, columns.column_name, columns.data_type
FROM information_schema.columns AS columns
INNER JOIN information_schema.tables AS tables
    USING (table_catalog, table_schema, table_name)
WHERE tables.table_catalog = $database
    AND (tables.table_type = 'BASE TABLE' OR tables.table_schema = 'current')
ORDER BY columns.table_schema, columns.table_name, columns.ordinal_position
"""
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
Name = tuple[str, str]
"""Schema and name of a table."""


@dataclass(frozen=True)
class Source:
    """A file that a home publishes, and the types of the columns of each table in it."""

    home: str
    file: Path
    tables: dict[Name, dict[str, str]]


def write_catalog(file: Path, folder: Path) -> list[Row]:
    """Write the catalog of the homes in a folder; return a row for each home.

    An earlier catalog is replaced. Raises ConfigurationError for a folder without homes, and for a
    file that is no catalog; StorageFailed for a home whose files cannot be read. Nothing is written
    then.
    """
    homes = {each.parent.parent.name: Home(each.parent.parent) for each in _configured(folder)}
    if not homes:
        raise ConfigurationError(
            f"There is no home in {folder}. Nothing was written.",
            "Name the folder that holds the homes: --homes FOLDER.",
        )
    _require_own(file)
    sources = list[Source]()
    rows = list[Row]()
    for name, home in homes.items():
        found = list(_sources(name, home))
        sources += found
        tables = {table for source in found for table in source.tables}
        rows.append(
            {
                "home": name,
                "folder": str(home.root),
                "tables": len(tables),
                "message": "" if found else NOT_PUBLISHED,
            }
        )
    part = file.with_name(f".{file.name}.part")
    remove(part)
    try:
        with closing(duckdb.connect(part)) as db:
            _write(db, sources, rows)
        sync_file(part)
        durable_rename(part, file)
    except (duckdb.Error, OSError) as error:
        remove(part)
        raise StorageFailed(
            f"The catalog {file} cannot be written: {printable(error)}.",
            "Correct what it names, then run the same command again.",
        ) from error
    return rows


def _configured(folder: Path) -> list[Path]:
    try:
        return sorted(folder.absolute().glob("*/config/connections.toml"))
    except OSError as error:
        raise ConfigurationError(
            f"The folder {folder} cannot be read: {error.strerror}. Nothing was written."
        ) from error


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


def _sources(name: str, home: Home) -> Iterator[Source]:
    """Yield what a home publishes: its version and its books. Raises StorageFailed."""
    warehouse = Warehouse(home)
    version = warehouse.published()
    if version is None:
        return
    with warehouse.open(version.number) as db:
        ((database,),) = db.execute("SELECT current_database()").fetchall()
        yield Source(name, home.link, _tables(db, database))
    folder = BooksFolder(warehouse)
    books = folder.published()
    if books is not None:
        with folder.open_alone(books) as db:
            yield Source(name, home.books_link, _tables(db, "books"))


def _tables(db: duckdb.DuckDBPyConnection, database: str) -> dict[Name, dict[str, str]]:
    tables = dict[Name, dict[str, str]]()
    found = db.execute(COLUMNS, {"database": database}).fetchall()
    for schema, table, column, column_type in found:
        tables.setdefault((schema, table), {})[column] = column_type
    return tables


def _write(db: duckdb.DuckDBPyConnection, sources: Sequence[Source], rows: Sequence[Row]) -> None:
    db.execute(CREATE_HOMES)
    for row in rows:
        values = [row["home"], row["folder"], not row["message"]]
        db.execute("INSERT INTO meta.homes VALUES (?, ?, ?)", values)
    names = dict.fromkeys(name for source in sources for name in source.tables)
    for schema in dict.fromkeys(schema for schema, _table in names):
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_identifier(schema)}")
    for name in sorted(names, key=_is_current):  # those are made of `history`
        having = [source for source in sources if name in source.tables]
        query = _current_rows if _is_current(name) else _rows_of_all
        schema, table = map(quote_identifier, name)
        db.execute(f"CREATE VIEW {schema}.{table} AS {query(name, having)}")


def _is_current(name: Name) -> bool:
    return name[0] == "current"


def _current_rows(name: Name, having: Sequence[Source]) -> str:
    """Return a query of the current rows of all homes."""
    _current, table = name
    columns = dict.fromkeys(column for source in having for column in source.tables[name])
    shown = ", ".join(quote_identifier(column) for column in (HOME, *columns))
    history = f"history.{quote_identifier(table)}"
    return f"SELECT {shown} FROM {history} AS history WHERE history._valid_to IS NULL"


def _rows_of_all(name: Name, having: Sequence[Source]) -> str:
    """Return a query of the rows of a table of all homes, with their types made common."""
    types = dict[str, list[str]]()
    for source in having:
        for column, column_type in source.tables[name].items():
            types.setdefault(column, []).append(column_type)
    common = {column: common_type(found) for column, found in types.items()}
    return " UNION ALL ".join(_rows_of_home(name, source, common) for source in having)


def _rows_of_home(name: Name, source: Source, common: dict[str, str]) -> str:
    schema, table = name
    own = source.tables[name]
    shown = [f"{quote_text(source.home)} AS {HOME}"]
    for column, wanted in common.items():
        quoted = quote_identifier(column)
        if column not in own:
            shown.append(f"CAST(NULL AS {wanted}) AS {quoted}")
            continue
        message = OTHER_TYPE.format(table=table, column=column, home=source.home)
        terms = {
            "column": quoted,
            "type": quote_text(own[column]),
            "common": wanted,
            "message": quote_text(message),
        }
        shown.append(CHECKED.format(**terms))
    file, schema, table = map(quote_text, (str(source.file), schema, table))
    reader = f"read_duckdb({file}, schema_name = {schema}, table_name = {table})"
    return f"SELECT {', '.join(shown)} FROM {reader} AS found"


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
