"""Writes tables into any database that SQLAlchemy knows, with exact numbers."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from pipelines.app.export_table import Column, ExportTable
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.text import Redactor, printable

MYSQL: Final = ("mysql", "mariadb")
TEXT: Final = sa.UnicodeText().with_variant(mysql.LONGTEXT(), *MYSQL)
TYPES: Final[dict[str, sa.types.TypeEngine[Any]]] = {
    "BOOLEAN": sa.Boolean(),
    "DATE": sa.Date(),
    "TIMESTAMP WITH TIME ZONE": sa.DateTime(timezone=True).with_variant(
        mysql.DATETIME(fsp=6), *MYSQL
    ),
    "DOUBLE": sa.Double(),
    "FLOAT": sa.Double(),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), sa.BigInteger()),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), sa.BigInteger()),
}
DECIMAL: Final = "DECIMAL"


def write_database(
    tables: Sequence[ExportTable], variable: str, url: str, redactor: Redactor
) -> None:
    """Replace tables in the database of a URL, each in one transaction.

    A database without exact decimals (SQLite) gets them as text. MySQL and Oracle commit when they
    create a table: only there a failure can leave one that is not whole. Raises ConfigurationError
    for a URL that cannot be used, StorageFailed.
    """
    engine = _connect(variable, url)
    redactor.add(url)
    redactor.add(str(engine.url.password or ""))
    try:
        for table in tables:
            with _failure_named(table, variable, redactor):
                _replace(engine, table)
    finally:
        engine.dispose()


def _connect(variable: str, url: str) -> sa.Engine:
    try:
        return sa.create_engine(url, hide_parameters=True)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError):
        raise ConfigurationError(
            f"The environment variable {variable} holds no database URL that can be used, or the "
            "driver that it names is not installed. Nothing was exported.",
            "Set it to a URL of SQLAlchemy, such as postgresql+psycopg://user:password@host/name, "
            "and install the driver.",
        ) from None


@contextmanager
def _failure_named(table: ExportTable, variable: str, redactor: Redactor) -> Iterator[None]:
    """Raise StorageFailed, without credentials, for what a database refuses."""
    try:
        yield
    except (SQLAlchemyError, ValueError, OverflowError) as error:
        reason = printable(redactor.clean(str(getattr(error, "orig", None) or error)))
        raise StorageFailed(
            f"`{table.title}` was not exported to the database in {variable}: {reason}. Tables "
            f"before it are exported. `{table.name}` is as before, unless the database cannot roll "
            "back a CREATE TABLE.",
            "Correct what the database says, then run `partner-sync export` again.",
        ) from None


def _replace(engine: sa.Engine, table: ExportTable) -> None:
    """Drop a table, create it anew and insert all rows, in one transaction."""
    names = [column.name for column in table.columns]
    for name in (table.name, *names):
        engine.dialect.validate_identifier(name)
    is_exact = engine.dialect.supports_native_decimal  # without, SQLAlchemy makes floats of them
    types = {column.name: _type(column, is_exact=is_exact) for column in table.columns}
    target = sa.Table(table.name, sa.MetaData(), *(sa.Column(*each) for each in types.items()))
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":  # its driver begins by itself before an INSERT only
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        target.drop(connection, checkfirst=True)
        target.create(connection)
        for batch in table.rows({*TYPES, DECIMAL} if is_exact else TYPES):
            rows = [dict(zip(names, row, strict=True)) for row in batch]
            connection.execute(sa.insert(target), rows)


def _type(column: Column, *, is_exact: bool) -> sa.types.TypeEngine[Any]:
    if column.kind == DECIMAL and is_exact:
        precision, scale = map(int, re.findall(r"\d+", column.type))
        return sa.Numeric(precision, scale)
    return TYPES.get(column.kind, TEXT)
