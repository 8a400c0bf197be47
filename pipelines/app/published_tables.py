"""Here: queries of the tables and views that a home publishes, which need no attached file.

DuckDB reads a table of another file with `read_duckdb`, but no view. So a view becomes its own
query, with the tables and views that it reads as common table expressions. Not here: what is made
of these queries (`catalog`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import StorageFailed
from pipelines.core.person import usable_path
from pipelines.core.text import quote_identifier, quote_text
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.version_files import Warehouse

# Values are in the text: for the first parameter in a process, DuckDB imports pandas (1.4 CPU s).
COLUMNS: Final = """
SELECT columns.schema_name, columns.table_name, columns.column_name, columns.data_type
FROM duckdb_columns() AS columns
WHERE columns.database_name = {database} AND NOT columns.internal
ORDER BY columns.schema_name, columns.table_name, columns.column_index
"""
VIEWS: Final = """
SELECT views.schema_name, views.view_name, views.sql
FROM duckdb_views() AS views
WHERE views.database_name = {database} AND NOT views.internal AND NOT views.temporary
"""
IDENTIFIER: Final = r'(?:"(?:[^"]|"")*"|\w+)'
CREATE_VIEW: Final = re.compile(rf"CREATE VIEW {IDENTIFIER}\.{IDENTIFIER} AS (.*?);?", re.DOTALL)
Name = tuple[str, str]
"""Schema and name of a table or view."""


@dataclass(frozen=True)
class View:
    """The query of a view, and the tables and views of its file that it reads.

    The query names them by one identifier, `schema.name`.
    """

    query: str
    reads: tuple[Name, ...]


@dataclass(frozen=True)
class PublishedFile:
    """A file that a home publishes; `columns` has the types of each table and view in it."""

    home: str
    link: Path
    columns: dict[Name, dict[str, str]]
    views: dict[Name, View]

    def query(self, name: Name) -> str:
        """Return a query of the rows of a table or view, of the file that the link names then."""
        if name not in self.views:
            schema, table = map(quote_text, name)
            file = quote_text(str(self.link))
            return f"FROM read_duckdb({file}, schema_name = {schema}, table_name = {table})"
        parts = list[str]()
        for part in dict.fromkeys(self._read_by(name)):
            query = self.views[part].query if part in self.views else self.query(part)
            # As a view, which is what it is: what is not asked for is not read.
            parts.append(f"{_identifier(part)} AS NOT MATERIALIZED ({query})")
        return f"WITH {', '.join(parts)} FROM {_identifier(name)}"

    def _read_by(self, name: Name) -> Iterator[Name]:
        """Yield all that a view reads, each after what it reads itself; the view is the last."""
        if name in self.views:
            for part in self.views[name].reads:
                yield from self._read_by(part)
        yield name


def published_files(name: str, home: Home) -> Iterator[PublishedFile]:
    """Yield what a home publishes: its version and its books.

    Raises StorageFailed, and ConfigurationError for a path that DuckDB cannot open.
    """
    usable_path(home.root)
    warehouse = Warehouse(home)
    version = warehouse.published()
    if version is None:
        return
    with warehouse.open(version.number) as db:
        ((database,),) = db.execute("SELECT current_database()").fetchall()
        yield PublishedFile(name, home.link, _columns(db, database), _views(db, database))
    folder = BooksFolder(warehouse)
    books = folder.published()
    if books is not None:
        with folder.open_alone(books) as db:
            yield PublishedFile(name, home.books_link, _columns(db, "books"), _views(db, "books"))


def _columns(db: duckdb.DuckDBPyConnection, database: str) -> dict[Name, dict[str, str]]:
    columns = dict[Name, dict[str, str]]()
    query = COLUMNS.format(database=quote_text(database))
    for schema, table, column, column_type in db.execute(query).fetchall():
        columns.setdefault((schema, table), {})[column] = column_type
    return columns


def _views(db: duckdb.DuckDBPyConnection, database: str) -> dict[Name, View]:
    """Return the views of a file. Raises StorageFailed for one that cannot be understood."""
    views = dict[Name, View]()
    query = VIEWS.format(database=quote_text(database))
    for schema, name, sql in db.execute(query).fetchall():
        created = CREATE_VIEW.fullmatch(sql)
        if created is None:
            raise StorageFailed(
                f"The view {schema}.{name} of {database} cannot be read. Nothing was written.",
                "Run `partner-sync versions build`, then `partner-sync reconcile` in this home.",
            )
        views[schema, name] = _parse(db, created[1])
    return views


def _parse(db: duckdb.DuckDBPyConnection, query: str) -> View:
    """Return a query with the name of each table as one identifier, by DuckDB's own parser."""
    ((text,),) = db.execute(f"SELECT json_serialize_sql({quote_text(query)})").fetchall()
    tree = json.loads(text)
    reads = list[Name]()
    for table in _tables_in(tree):
        name = (table["schema_name"], table["table_name"])
        reads.append(name)
        table["alias"] = table["alias"] or table["table_name"]
        table["schema_name"] = ""
        table["table_name"] = ".".join(name)
    text = quote_text(json.dumps(tree))
    ((renamed,),) = db.execute(f"SELECT json_deserialize_sql({text})").fetchall()
    return View(renamed, tuple(dict.fromkeys(reads)))


def _tables_in(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the references to tables in a parsed query, without those to parts of itself."""
    if isinstance(tree, list):
        for part in tree:
            yield from _tables_in(part)
    elif isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE" and tree["schema_name"]:
            yield tree
        for part in tree.values():
            yield from _tables_in(part)


def _identifier(name: Name) -> str:
    return quote_identifier(".".join(name))
