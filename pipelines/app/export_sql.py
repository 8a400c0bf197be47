"""Writes tables into any database that SQLAlchemy knows, with exact numbers."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import duckdb
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.text import Redactor, printable
from pipelines.versions.export_table import ExportColumn, ExportTable

# Without these types, MySQL keeps 64 KB of a text, and whole seconds of a time.
MYSQL: Final = ("mysql", "mariadb")
TEXT: Final = sa.UnicodeText().with_variant(mysql.LONGTEXT(), *MYSQL)
TIME: Final = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), *MYSQL)
TYPES: Final[dict[str, sa.types.TypeEngine[Any]]] = {
    "BOOLEAN": sa.Boolean(),
    "INTEGER": sa.BigInteger(),
    "BIGINT": sa.BigInteger(),
    "DATE": sa.Date(),
    "TIMESTAMP WITH TIME ZONE": TIME,
}


def write_database(
    tables: Sequence[ExportTable], variable: str, url: str, redactor: Redactor
) -> None:
    """Replace tables in the database of a URL, each in one transaction.

    A database without exact decimals (SQLite) gets them as text. MySQL and Oracle commit when they
    create a table: only there a failure can leave one that is not whole. Raises ConfigurationError
    for a URL that cannot be used, StorageFailed.
    """
    try:
        # Else the text of an error would repeat values of rows.
        engine = sa.create_engine(url, hide_parameters=True)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError):
        raise ConfigurationError(
            f"The environment variable {variable} holds no valid database URL, or its driver is "
            "not installed. Nothing was exported.",
            "Set it to an SQLAlchemy URL, such as postgresql+psycopg://user:password@host/name, "
            "and install the driver.",
        ) from None
    redactor.add(url)
    redactor.add(str(engine.url.password or ""))
    try:
        for table in tables:
            _replace(engine, table)
    except (SQLAlchemyError, ValueError, OverflowError, duckdb.Error) as error:
        reason = printable(redactor.clean(str(getattr(error, "orig", None) or error))).rstrip(".")
        raise StorageFailed(
            f"`{table.title}` was not exported to the database in {variable}: {reason}. Tables "
            f"before it are exported. `{table.name}` is as before, unless the database cannot roll "
            "back a CREATE TABLE.",
            "Correct the cause that the database reports, then run `partner-sync export` again.",
        ) from None
    finally:
        engine.dispose()


def _replace(engine: sa.Engine, table: ExportTable) -> None:
    """Drop a table, create it anew and insert all rows, in one transaction."""
    target = target_table(table, engine.dialect)
    names = target.columns.keys()

    def expression(column: ExportColumn) -> str:
        return column.text if target.columns[column.name].type is TEXT else column.value

    with engine.begin() as connection:
        # The driver of SQLite begins a transaction by itself before an INSERT, but not before DROP.
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        target.drop(connection, checkfirst=True)
        target.create(connection)
        for batch in table.rows(expression):
            rows = [dict(zip(names, row, strict=True)) for row in batch]
            connection.execute(sa.insert(target), rows)


def target_table(table: ExportTable, dialect: sa.Dialect) -> sa.Table:
    """Return the table that a database gets. Raises IdentifierError for a name too long for it."""
    for name in (table.name, *(column.name for column in table.columns)):
        dialect.validate_identifier(name)
    columns = [sa.Column(column.name, _type(column, dialect)) for column in table.columns]
    return sa.Table(table.name, sa.MetaData(), *columns)


def _type(column: ExportColumn, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
    """Return a type that keeps the values of a column."""
    if column.kind != "DECIMAL":
        return TYPES.get(column.kind, TEXT)
    precision, scale = map(int, re.findall(r"\d+", column.type))
    exact = sa.Numeric(precision, scale)
    bind = exact.dialect_impl(dialect).bind_processor(dialect)
    # For a database without exact decimals, SQLAlchemy binds them as floats.
    is_rounded = bind is not None and isinstance(bind(Decimal("0.1")), float)
    return TEXT if is_rounded else exact
