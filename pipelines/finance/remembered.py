"""What finance remembers of earlier books: since when a break is there, what was posted.

Rows of the metadata database, only added. Those of versions that were rolled back are undone.
"""

import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import duckdb
import pyarrow as pa
from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.orm import Session

from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import is_one_of
from pipelines.finance.reconcile.statements import REMEMBERED
from pipelines.metadata.tables import BooksRow, BreakRow, CorrectionRow, OwnSourceRow, VersionRow
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import Row, fetch_rows

TABLES: Final[dict[str, type[BreakRow] | type[CorrectionRow]]] = {
    "breaks": BreakRow,
    "corrections": CorrectionRow,
}
# Columns of a row itself, not of what it remembers.
OWN: Final = {"number_of_row", "version", "undone_at"}
ARROW: Final = {
    "month": pa.date32(),
    "posted_to": pa.date32(),
    "rows": pa.int64(),
    "number": pa.int32(),
    **dict.fromkeys(
        ("first_seen", "last_seen", "gone_at", "returned_at", "seen_at"),
        pa.timestamp("us", tz="UTC"),
    ),
}
DIGITS: Final = 38
# Breaks that are not as they are remembered. `last_seen` of one that is there changes each time:
# `break_facts.sql` takes it from `last_as_of`.
CHANGED: Final = """
SELECT {columns}, coalesce(facts.last_seen, getvariable('as_of')) AS last_seen
FROM reconciliation.break_facts AS facts
LEFT JOIN temp.memory_breaks AS before USING (break_id)
WHERE before.break_id IS NULL OR row({now}) IS DISTINCT FROM row({then})
ORDER BY facts.break_id
"""
POSTED: Final = """
SELECT {columns}
FROM (FROM reconciliation.corrections EXCEPT ALL FROM temp.memory_corrections) AS posted
ORDER BY ALL
"""
# Of other books: breaks that are not as they are remembered, of connections that are not chosen.
OTHER_BREAKS: Final = """
SELECT count(*)
FROM (FROM {books}.reconciliation.break_facts AS rows WHERE NOT {is_chosen}) AS facts
FULL JOIN (FROM temp.remembered_breaks AS rows WHERE NOT {is_chosen}) AS before USING (break_id)
WHERE facts.break_id IS NULL OR before.break_id IS NULL OR row({now}) IS DISTINCT FROM row({then})
    OR (facts.gone_at IS NOT NULL AND facts.last_seen IS DISTINCT FROM before.last_seen)
"""
OTHER_CORRECTIONS: Final = """
WITH posted AS (
    FROM {books}.reconciliation.corrections AS rows WHERE NOT {is_chosen}
), before AS (
    FROM temp.remembered_corrections AS rows WHERE NOT {is_chosen}
)
SELECT count(*)
FROM ((FROM posted EXCEPT ALL FROM before) UNION ALL (FROM before EXCEPT ALL FROM posted))
"""
# Of a source that was not compared, what it had when it was compared last.
OWN_SOURCES: Final = """
SELECT
    sources.source, sources.fewest_rows, sources.begins,
    greatest(sources.rows_before, if(sources.evaluated, sources.rows, NULL)) AS rows
FROM reconciliation.own_sources AS sources
"""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Additions:
    """What new books add to what is remembered, and the end of their data."""

    as_of: datetime | None
    breaks: list[Row] = field(default_factory=list)
    corrections: list[Row] = field(default_factory=list)
    own_sources: list[Row] = field(default_factory=list)


def follow_published(stores: Stores) -> None:
    """Let those rows count that the published version follows; take over those of old versions.

    Rows of later versions were rolled back: they are undone. If such a version is published again,
    its rows count again; what was undone before it was built does not.
    """
    published = stores.warehouse.published()
    if published is None:
        return
    now = stores.clock.utc_now()
    with stores.metadata.transaction() as session:
        row = session.get(VersionRow, published.number)
        for table in TABLES.values():
            is_later = table.version > published.number
            undone = update(table).where(is_later, table.undone_at.is_(None))
            session.execute(undone.values(undone_at=now))
            # What was undone before this version was made, an earlier rollback undid.
            if row is not None:
                back = update(table).where(~is_later, table.undone_at > row.created_at)
                session.execute(back.values(undone_at=None))
        is_begun = any(
            session.scalar(select(func.count()).where(table.version <= published.number))
            for table in (BooksRow, BreakRow, CorrectionRow)
        )
    if not is_begun:
        _take_over(stores, published.number)


def _take_over(stores: Stores, published: int) -> None:
    """Take over what the newest readable version remembers, as versions did until 0.2.0."""
    for version in reversed(stores.warehouse.versions()):
        if version.number > published:
            continue
        with (
            suppress(PartnerSyncError, duckdb.Error),
            stores.warehouse.open(version.number) as db,
        ):
            rows_of = {name: fetch_rows(db, f"FROM reconciliation.{name}") for name in TABLES}
            with stores.metadata.transaction() as session:
                for name, rows in rows_of.items():
                    _add(session, name, _stored(rows, name, version.number))
            logger.info("Version %s: its memory of breaks was taken over.", version.number)
            return


def read(stores: Stores) -> tuple[dict[str, pa.Table], datetime | None]:
    """Return what is remembered, by table, and the end of the data of the newest books."""
    published = stores.warehouse.published()
    number = published.number if published else 0
    corrections = (
        select(*_columns("corrections"))
        .where(CorrectionRow.undone_at.is_(None))
        .order_by(CorrectionRow.number_of_row)
    )
    as_of = (
        select(BooksRow.as_of)
        .where(BooksRow.version <= number, BooksRow.as_of.is_not(None))
        .order_by(BooksRow.made_at.desc())
        .limit(1)
    )
    tables = {}
    with stores.metadata.transaction() as session:
        for name, query in (("breaks", _newest_breaks()), ("corrections", corrections)):
            tables[name] = _arrow(name, session.execute(query).mappings().all())
        return tables, session.scalar(as_of)


def _newest_breaks() -> Select[Any]:
    """Return the query of the newest row of each break that is not undone."""
    place = func.row_number().over(
        partition_by=BreakRow.break_id, order_by=(BreakRow.version.desc(), BreakRow.number.desc())
    )
    placed = select(BreakRow.number, place.label("place")).where(BreakRow.undone_at.is_(None))
    newest = placed.subquery()
    breaks = select(*_columns("breaks")).join(newest, newest.c.number == BreakRow.number)
    return breaks.where(newest.c.place == 1)


def _columns(name: str) -> list[Any]:
    table = TABLES[name]
    hidden = set(OWN)
    # Of corrections, `number` is that of the close.
    if table is BreakRow:
        hidden.add("number")
    return [column for column in table.__table__.columns if column.name not in hidden]


def _arrow(name: str, rows: Iterable[Any]) -> pa.Table:
    """Return rows with amounts as decimals, of as many digits behind the point as they need."""
    rows = list(rows)
    amounts = REMEMBERED[name]
    columns = {}
    for column in _columns(name):
        values = [row[column.name] for row in rows]
        of_type = ARROW.get(column.name, pa.string())
        if column.name in amounts:
            values = [None if value is None else Decimal(value) for value in values]
            scale = max((_scale(value) for value in values if value is not None), default=0)
            of_type = pa.decimal128(DIGITS, scale)
        columns[column.name] = pa.array(values, of_type)
    return pa.table(columns)


def _scale(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):  # of what is no number
        return 0
    return max(0, -exponent)


def find_new(db: duckdb.DuckDBPyConnection) -> Additions:
    """Return what open books, which are being made, add; nothing where they failed."""
    names = [column.name for column in _columns("breaks")]
    columns = ", ".join(f"facts.{name}" for name in names if name != "last_seen")
    changed = CHANGED.format(columns=columns, **_compared())
    posted = POSTED.format(
        columns=", ".join(f"posted.{column.name}" for column in _columns("corrections"))
    )
    new = Additions(read_as_of(db))
    # Each is missing where its statement failed, or there are no own books.
    with suppress(duckdb.CatalogException):
        new.breaks.extend(fetch_rows(db, changed))
    with suppress(duckdb.CatalogException):
        new.corrections.extend(fetch_rows(db, posted))
    with suppress(duckdb.CatalogException):
        new.own_sources.extend(fetch_rows(db, OWN_SOURCES))
    return new


def is_remembered(db: duckdb.DuckDBPyConnection, books: str, chosen: Collection[str]) -> bool:
    """Return whether attached books have what is remembered, of connections that are not chosen."""
    is_chosen = is_one_of("rows.connection", chosen)
    queries = (
        OTHER_BREAKS.format(books=books, is_chosen=is_chosen, **_compared()),
        OTHER_CORRECTIONS.format(books=books, is_chosen=is_chosen),
    )
    return all(db.execute(query).fetchall() == [(0,)] for query in queries)


def _compared() -> dict[str, str]:
    """Return the columns of a break that are compared with what is remembered, as SQL."""
    names = [column.name for column in _columns("breaks")]
    compared = [name for name in names if name not in {"break_id", "last_seen"}]
    return {
        "now": ", ".join(f"facts.{name}" for name in compared),
        "then": ", ".join(f"before.{name}" for name in compared),
    }


def read_as_of(db: duckdb.DuckDBPyConnection) -> datetime | None:
    """Return the end of the data of open books."""
    ((as_of,),) = db.execute("SELECT basis.as_of FROM reconciliation.basis AS basis").fetchall()
    return as_of  # type: ignore[no-any-return]


def record(stores: Stores, books: Books, new: Additions) -> None:
    """Record books, and what they add, in one transaction."""
    about = BooksRow(version=books.version, number=books.number, made_at=stores.clock.utc_now())
    about.as_of = new.as_of
    about.sha256 = BooksFolder(stores.warehouse).digest(books)
    # Before the transaction: on SQLite, every request that a sync sends meanwhile waits for it.
    breaks = _stored(new.breaks, "breaks", books.version)
    corrections = _stored(new.corrections, "corrections", books.version)
    with stores.metadata.transaction() as session:
        session.merge(about)
        _add(session, "breaks", breaks)
        _add(session, "corrections", corrections)
        for row in new.own_sources:
            session.merge(OwnSourceRow(**row))


def _stored(rows: list[Row], name: str, version: int) -> list[Row]:
    """Return rows as their table has them."""
    names = [column.name for column in _columns(name)]
    stored = []
    for row in rows:
        remembered = {column: row.get(column) for column in names}
        # As text: SQLite has no decimals.
        for amount in REMEMBERED[name]:
            if remembered[amount] is not None:
                remembered[amount] = f"{remembered[amount]:f}"
        stored.append({"version": version, **remembered})
    return stored


def _add(session: Session, name: str, rows: list[Row]) -> None:
    if rows:
        session.execute(insert(TABLES[name]), rows)
