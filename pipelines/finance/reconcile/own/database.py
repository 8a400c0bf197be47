"""Reads a table of the user's database, whose address only an environment variable has."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from pipelines.core.text import Redactor, printable
from pipelines.finance.reconcile.own.cells import text_of
from pipelines.finance.reconcile.own.not_read import NotRead

FETCHED: Final = 10_000
MEMORY: Final = ":memory:"
# Of these databases, a transaction sees all rows as they were at one moment.
AT_ONE_MOMENT: Final = {"postgresql": "REPEATABLE READ", "sqlite": "SERIALIZABLE"}
DRIVER: Final = {"postgresql": "postgresql+psycopg"}  # the one that is installed with us
Texts = tuple[str | None, ...]


def is_of_one_moment(variable: str) -> bool:
    """Return whether nothing that changes while a table is read can be seen."""
    with suppress(ArgumentError):
        return sa.make_url(os.environ.get(variable, "")).get_backend_name() in AT_ONE_MOMENT
    return False


class TableRows:
    """The rows of a table, once, in the order of their values; then their digest."""

    def __init__(self, variable: str, table: str, columns: dict[str, str]) -> None:
        self._variable = variable
        self._table = table
        self._columns = columns
        self._digest = hashlib.sha256()

    def sha256(self) -> str:
        """Return the SHA-256 of the rows that were read: of their mapped columns, as JSON lines."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Texts]:
        """Yield rows as texts, in the order of the columns. Raises NotRead."""
        redactor = Redactor()
        engine = self._engine(redactor)
        try:
            self._require_columns(engine)
            with self._transaction(engine) as connection:
                # Of another database, rows that came or went show in numbers that differ.
                before = self._count(connection)
                read = 0
                for row in self._rows(connection):
                    read += 1
                    yield row
                self._require_equal(before, read, self._count(connection))
        except Exception as error:  # drivers fail in many ways
            if isinstance(error, NotRead):
                raise
            reason = redactor.clean(str(getattr(error, "orig", None) or error))
            first_line = printable(reason.partition("\n")[0]).rstrip(".")
            raise NotRead(f"{self._table} in {self._variable}: {first_line}") from None
        finally:
            engine.dispose()

    def _engine(self, redactor: Redactor) -> sa.Engine:
        url = os.environ.get(self._variable, "")
        if not url:
            raise NotRead(f"the environment variable {self._variable} is not set")
        redactor.add(url)
        try:
            address = sa.make_url(url)
            address = address.set(drivername=DRIVER.get(address.drivername, address.drivername))
            engine = sa.create_engine(address, hide_parameters=True)
        except (ArgumentError, NoSuchModuleError, ImportError, ValueError):
            raise NotRead(
                f"{self._variable} holds no valid database URL, or its driver is not installed"
            ) from None
        redactor.add(str(engine.url.password or ""))
        self._require_file(engine.url)
        return engine

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """Yield a connection whose transaction sees one moment, if the database can do that."""
        level = AT_ONE_MOMENT.get(engine.dialect.name)
        with engine.connect() as connection:
            if level:
                connection.execution_options(isolation_level=level)
            if engine.dialect.name == "sqlite":
                # Python's driver begins a transaction before it writes, not before it reads.
                connection.exec_driver_sql("BEGIN")
            yield connection

    def _require_file(self, url: sa.URL) -> None:
        """Raise NotRead for a file of SQLite that is not there: to open it would create it."""
        name = url.database or MEMORY
        if url.get_backend_name() != "sqlite" or name == MEMORY or name.startswith("file:"):
            return
        if not Path(name).is_file():
            raise NotRead(f"the file that {self._variable} names is not there")

    def _require_equal(self, before: int, read: int, after: int) -> None:
        if not before == read == after:
            raise NotRead(f"{self._table} changed while it was read")

    def _require_columns(self, engine: sa.Engine) -> None:
        """Raise NotRead where one is not there: SQLite would take its name for a text."""
        schema, _point, name = self._table.rpartition(".")
        there = {column["name"] for column in sa.inspect(engine).get_columns(name, schema or None)}
        for role, column in self._columns.items():
            if column not in there:
                raise NotRead(
                    f"{self._table} in {self._variable} has no column {printable(column, 40)} "
                    f"(role {role})"
                )

    def _named(self) -> sa.TableClause:
        schema, _point, name = self._table.rpartition(".")
        # Several roles may have one column.
        columns: list[sa.ColumnClause[Any]] = [
            sa.column(column) for column in dict.fromkeys(self._columns.values())
        ]
        return sa.table(name, *columns, schema=schema or None)

    def _count(self, connection: sa.Connection) -> int:
        query = sa.select(sa.func.count()).select_from(self._named())
        return int(connection.execute(query).scalar_one())

    def _rows(self, connection: sa.Connection) -> Iterator[Texts]:
        table = self._named()
        # Without types: what the driver returns, and no decimal that was made of a float.
        query = sa.select(*table.columns).order_by(*table.columns)
        rows = connection.execution_options(yield_per=FETCHED).execute(query)
        for row in rows:
            by_column = dict(zip(table.columns.keys(), row, strict=True))
            texts = tuple(text_of(role, by_column[name]) for role, name in self._columns.items())
            self._digest.update(json.dumps(texts, ensure_ascii=False).encode() + b"\n")
            yield texts
