"""Schema `meta` of the work database: what the tables beside it were made of.

A fold is recorded in the transaction that changes the tables, so the two never disagree, whatever
is killed, lost or restored. Analysts read it as `meta.freshness`.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from datetime import datetime

import duckdb

from pipelines.errors import WarehouseDamaged
from pipelines.warehouse import quarantine
from pipelines.warehouse.database import exists, quoted

FOLDS = """
CREATE TABLE IF NOT EXISTS meta.folds (
    run VARCHAR, connection VARCHAR, stream VARCHAR, manifest VARCHAR,
    read BIGINT, duplicates BIGINT, conflicts BIGINT, rows BIGINT, folded_at TIMESTAMPTZ
)
"""
# Came later: a work database of an older version is given it.
ASIDE = "ALTER TABLE meta.folds ADD COLUMN IF NOT EXISTS quarantined BIGINT DEFAULT 0"
FRESHNESS = """
CREATE OR REPLACE TABLE meta.freshness AS
SELECT connection, stream, rows, quarantined, duplicates, conflicts, manifest, folded_at,
       $now::TIMESTAMPTZ AS published_at, $version::BIGINT AS version
FROM meta.folds ORDER BY connection, stream
"""
COMMENTS = {
    "rows": "rows in current.<stream>",
    "quarantined": "rows set aside in quarantine.<stream>, each with its reason; not in rows",
    "duplicates": "rows read again, to prove that none was missed; each is in the table once",
    "conflicts": "rows that were twice on a page and said something else; the later one is kept",
    "manifest": "the file of the archive that lists the pages read",
    "folded_at": "when the pages became these rows",
    "version": "the number in the name of this file",
}


@dataclass(frozen=True)
class Fold:
    """One manifest folded into `current`, in rows.

    Of those `read`, `rows` are in the table, `quarantined` are set aside, and `duplicates` were
    replaced by a newer read of the same; `conflicts` of these said something else in one page.
    """

    run: str
    connection: str
    stream: str
    manifest: str
    read: int
    duplicates: int
    conflicts: int
    rows: int
    folded_at: datetime
    quarantined: int = 0


Held = Mapping[tuple[str, str], Fold]


def record(database: duckdb.DuckDBPyConnection, fold: Fold) -> None:
    """Say what a stream's tables are made of now."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(FOLDS)
    database.execute(ASIDE)
    database.execute(
        "DELETE FROM meta.folds WHERE connection = ? AND stream = ?", [fold.connection, fold.stream]
    )
    marks = ", ".join("?" * len(fields(Fold)))
    database.execute(f"INSERT INTO meta.folds VALUES ({marks})", list(astuple(fold)))


def held(database: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], Fold]:
    """Return what the tables are made of, by connection and stream."""
    if not exists(database, "meta", "folds"):
        return {}
    database.execute(ASIDE)
    rows = database.execute("SELECT * FROM meta.folds ORDER BY connection, stream").fetchall()
    return {(fold.connection, fold.stream): fold for fold in (Fold(*row) for row in rows)}


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
