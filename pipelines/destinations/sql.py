"""Any database that SQLAlchemy reaches: `current.usage` becomes its table `current_usage`.

Its URL is asked for by the name of an environment variable and appears in no text of ours. What
arrived is read back inside the transaction: exact, or rolled back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator, TypeEngine

from pipelines.destinations.base import Destination, Parcel, Written
from pipelines.errors import ConfigurationError, ExportFailed
from pipelines.warehouse.published import Published, Table

LONGEST = Context(prec=100)  # a sum of DECIMAL(38) stays exact
BY_TEXT = {"sqlite"}  # no decimal type: its numbers are binary
AT_ONCE = {"mysql", "mariadb", "oracle"}  # commit every CREATE and DROP by themselves


class Exact(TypeDecorator[Decimal]):
    """A DECIMAL: NUMERIC where the database has it, else its plain digits as text."""

    impl = sa.Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        """Choose by what the database can hold."""
        return dialect.type_descriptor(sa.Text() if dialect.name in BY_TEXT else self.impl_instance)

    def process_bind_param(self, value: Decimal | None, dialect: sa.Dialect) -> Any:
        """Write every digit."""
        return f"{value:f}" if value is not None and dialect.name in BY_TEXT else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Decimal | None:
        """Read what is there; a float shows as what it is."""
        del dialect
        return None if value is None else Decimal(value)


class Utc(TypeDecorator[datetime]):
    """A time; in UTC, without a zone, where the database has times without zones only."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Leave the zone out where it would be dropped or refused."""
        plain = value is not None and dialect.name in BY_TEXT | {"mysql", "mariadb"}
        return value.astimezone(UTC).replace(tzinfo=None) if value and plain else value


TIME = Utc(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def _deliver(parcel: Parcel) -> list[Written]:
    """Replace the tables in one transaction."""
    with _target(parcel.variable) as engine, engine.begin() as connection:
        return [_copied(connection, parcel.source, table) for table in parcel.tables]


@contextmanager
def _target(variable: str) -> Iterator[sa.Engine]:
    """Yield the database behind a variable; every failure of it in words, without its URL."""
    engine = _engine(variable)
    if engine.dialect.name == "sqlite":
        _let_begin(engine)
    try:
        yield engine
    except sa.exc.SQLAlchemyError as error:
        cause = _without(engine.url, str(getattr(error, "orig", None) or error))
        raise ExportFailed(
            f"the database that {variable} names refused: {cause}. {_kept(engine)}"
        ) from None
    finally:
        engine.dispose()


def _engine(variable: str) -> sa.Engine:
    """Return the engine of a variable's URL, which has connected to nothing yet."""
    try:
        return sa.create_engine(os.environ.get(variable) or "", hide_parameters=True)
    except (ImportError, sa.exc.NoSuchModuleError) as error:
        raise ConfigurationError(
            f"the database that {variable} names needs a driver that is not installed here: {error}"
        ) from None
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigurationError(
            f"{variable} is not set to a SQLAlchemy URL, such as "
            "postgresql+psycopg://user:password@host/database"
        ) from None


def _without(url: sa.URL, text: str) -> str:
    """Return a driver's words without what the URL holds."""
    queried = [each for values in url.normalized_query.values() for each in values]
    for secret in (url.render_as_string(hide_password=False), str(url.password or ""), *queried):
        text = text.replace(secret, "***") if secret else text
    return text.strip().rstrip(".")


def _kept(engine: sa.Engine) -> str:
    if engine.dialect.name in AT_ONCE:
        return "It may have lost tables that were to be replaced: export again when that is mended."
    return "It keeps the tables that it had."


def _let_begin(engine: sa.Engine) -> None:
    """Let transactions hold CREATE and DROP too; Python's driver would begin after them."""

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _copied(connection: sa.Connection, source: Published, table: Table) -> Written:
    """Put a table in place of what was there, and read it back."""
    columns = [sa.Column(each.name, _type(each.type)) for each in table.columns]
    target = sa.Table(f"{table.schema}_{table.name}", sa.MetaData(), *columns)
    target.drop(connection, checkfirst=True)
    target.create(connection)
    rows, sums = 0, dict.fromkeys(_decimals(table), Decimal())
    for batch in source.batches(table.query):
        values = batch.to_pylist()
        connection.execute(target.insert(), values)
        rows += len(values)
        _add(sums, values)
    _assert_there(connection, target, rows, sums)
    return Written(table.title, rows, target.name, tuple(_notes(connection, table)))


def _type(kind: pa.DataType) -> TypeEngine[Any]:
    """Return the type of a column; `published` gives no kinds but these."""
    if pa.types.is_decimal(kind):
        return Exact(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIME
    if pa.types.is_integer(kind):
        return sa.BigInteger()
    found: dict[str, TypeEngine[Any]] = {
        "bool": sa.Boolean(),
        "date32[day]": sa.Date(),
        "binary": sa.LargeBinary(),
        "float": sa.Double(),
        "double": sa.Double(),
    }
    return found.get(str(kind), TEXT)


def _decimals(table: Table) -> list[str]:
    return [each.name for each in table.columns if pa.types.is_decimal(each.type)]


def _add(sums: dict[str, Decimal], rows: list[dict[str, Any]]) -> None:
    for row in rows:
        for name, value in sums.items():
            sums[name] = LONGEST.add(value, row[name] or Decimal())


def _assert_there(
    connection: sa.Connection, target: sa.Table, rows: int, sums: dict[str, Decimal]
) -> None:
    """Raise ExportFailed unless count and every sum are, to the last digit, what was sent."""
    there = connection.execute(sa.select(sa.func.count()).select_from(target)).scalar()
    found = dict.fromkeys(sums, Decimal())
    if sums:
        chosen = sa.select(*(target.c[name] for name in sums))
        for some in connection.execution_options(yield_per=5000).execute(chosen).partitions():
            _add(found, [dict(row._mapping) for row in some])  # noqa: SLF001 SQLAlchemy's own door
    wrong = [name for name in sums if sums[name] != found[name]]
    if there != rows or wrong:
        raise ExportFailed(
            f"{target.name}: of {rows:,} rows {there:,} arrived"
            + (f", and the database rounds {', '.join(wrong)}" if wrong else "")
            + "; the export was taken back"
        )


def _notes(connection: sa.Connection, table: Table) -> list[str]:
    names = _decimals(table) if connection.dialect.name in BY_TEXT else []
    words = (
        f"{table.title}: {', '.join(names)} are text, because this database has no decimals: every "
        "digit is there, but it would add them up as binary numbers"
    )
    return [words] if names else []


SQL = Destination(
    name="sql",
    description="Any database that SQLAlchemy reaches, its URL by the NAME of a variable.",
    deliver=_deliver,
    files=False,
)
