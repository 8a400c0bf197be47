"""Schema `meta` of the work database: what the tables beside it were made of.

`meta.folds` has a row for every manifest that was folded, in the order in which that was done. It
is written in the transaction that changes the tables, so the two never disagree, whatever is
killed, lost or restored. `meta.freshness` shows analysts the newest of every stream.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime

import duckdb

from pipelines.errors import WarehouseDamaged
from pipelines.warehouse import quarantine
from pipelines.warehouse.database import exists, quoted

FOLDS = """
CREATE TABLE IF NOT EXISTS meta.folds (
    number BIGINT, run VARCHAR, connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE,
    grade VARCHAR, ended_at TIMESTAMPTZ, read BIGINT, duplicates BIGINT, conflicts BIGINT,
    quarantined BIGINT, rows BIGINT, folded_at TIMESTAMPTZ
)
"""
NEWEST = """
SELECT * FROM meta.folds
QUALIFY row_number() OVER (PARTITION BY connection, stream ORDER BY number DESC) = 1
ORDER BY connection, stream
"""
FRESHNESS = f"""
CREATE OR REPLACE TABLE meta.freshness AS
SELECT connection, stream, rows, quarantined, duplicates, conflicts, manifest, day, grade, ended_at,
       folded_at, $now::TIMESTAMPTZ AS published_at, $version::BIGINT AS version
FROM ({NEWEST})
"""
COMMENTS = {
    "rows": "rows in current.<stream>",
    "quarantined": "rows set aside in quarantine.<stream>, each with its reason; not in rows",
    "duplicates": "rows read again, to prove that none was missed; each is in the table once",
    "conflicts": "rows that were twice on a page and said something else; the later one is kept",
    "manifest": "the file of the archive that lists the pages read",
    "ended_at": "when the list was read to its end",
    "folded_at": "when the pages became these rows",
    "version": "the number in the name of this file",
}


@dataclass(frozen=True)
class Fold:
    """One manifest folded into the tables, in rows; `number` counts the folds of a work database.

    Of those `read`, `quarantined` are set aside and `duplicates` were replaced by a newer read of
    the same; `conflicts` of these said something else in one page. `rows` are in `current` then.
    """

    number: int
    run: str
    connection: str
    stream: str
    manifest: str
    day: date
    grade: str
    ended_at: datetime
    read: int
    duplicates: int
    conflicts: int
    quarantined: int
    rows: int
    folded_at: datetime


Held = Mapping[tuple[str, str], Fold]


def record(database: duckdb.DuckDBPyConnection, fold: Fold) -> None:
    """Say what a stream's tables are made of now."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(FOLDS)
    marks = ", ".join("?" * len(fields(Fold)))
    database.execute(f"INSERT INTO meta.folds VALUES ({marks})", list(astuple(fold)))


def folds(database: duckdb.DuckDBPyConnection) -> list[Fold]:
    """Return every fold, in order."""
    return _rows(database, "SELECT * FROM meta.folds ORDER BY number")


def held(database: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], Fold]:
    """Return what the tables are made of: the newest fold of every connection and stream."""
    return {(fold.connection, fold.stream): fold for fold in _rows(database, NEWEST)}


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> list[Fold]:
    if not exists(database, "meta", "folds"):
        return []
    return [Fold(*row) for row in database.execute(query).fetchall()]


def verify(database: duckdb.DuckDBPyConnection, folds: Held) -> None:
    """Raise WarehouseDamaged where a stream does not hold what was folded, set aside included."""
    for fold in folds.values():
        table = quoted("current", fold.stream)
        there = database.execute(
            f"SELECT count(*) FROM {table} WHERE _connection = ?", [fold.connection]
        ).fetchone()
        aside = quarantine.count(database, fold.connection, fold.stream)
        if there != (fold.rows,) or aside != fold.quarantined:
            raise WarehouseDamaged(
                f"{table} holds {there} rows of {fold.connection} and {aside} are set aside, but "
                f"{fold.rows} and {fold.quarantined} were folded; what analysts open stays as it "
                "was. Move work/warehouse.duckdb away and run sync: it is built again from the "
                "archive."
            )


def tell(database: duckdb.DuckDBPyConnection, version: int, now: datetime) -> None:
    """Write `meta.freshness`: what each stream of a version is made of."""
    database.execute(FRESHNESS, {"now": now, "version": version})
    for name, text in COMMENTS.items():
        database.execute(f"COMMENT ON COLUMN meta.freshness.{name} IS '{text}'")
