"""Schema `meta` of the work database: what the tables beside it were made of.

`meta.folds` has a row for every manifest that was folded, in the order in which that was done. It
is written in the transaction that changes the tables, so the two never disagree, whatever is
killed, lost or restored. `meta.freshness` shows analysts the newest of every stream.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime

import duckdb

from pipelines.errors import WarehouseDamaged
from pipelines.warehouse import quarantine
from pipelines.warehouse.database import exists, listed, quoted, scalar, together

FOLDS = """
CREATE TABLE IF NOT EXISTS meta.folds (
    number BIGINT, run VARCHAR, connection VARCHAR, stream VARCHAR, manifest VARCHAR, day DATE,
    grade VARCHAR, ended_at TIMESTAMPTZ, read BIGINT, duplicates BIGINT, conflicts BIGINT,
    quarantined BIGINT, rows BIGINT, added BIGINT, changed BIGINT, restated BIGINT, gone BIGINT,
    missing BIGINT, folded_at TIMESTAMPTZ
)
"""
NEWEST = """
SELECT * FROM meta.folds
QUALIFY row_number() OVER (PARTITION BY connection, stream ORDER BY number DESC) = 1
ORDER BY connection, stream
"""
COUNTED = ("current", "past", quarantine.SCHEMA)
LIST = "SELECT * FROM meta.folds WHERE connection = ? AND stream = ?"
ENDED = """
SELECT connection, sum(changed + restated + gone)::BIGINT FROM meta.folds
WHERE stream = $stream AND list_contains($connections, connection) GROUP BY ALL
"""
FRESHNESS = f"""
CREATE OR REPLACE TABLE meta.freshness AS
SELECT connection, stream, rows, missing, quarantined, duplicates, conflicts, manifest, day, grade,
       ended_at, folded_at, $now::TIMESTAMPTZ AS published_at, $version::BIGINT AS version
FROM ({NEWEST})
"""
COMMENTS = {
    "rows": "rows in current.<stream>",
    "missing": "of these rows, those that the last reading lacks: see missing_since",
    "quarantined": "rows set aside in quarantine.<stream>, each with its reason; not in rows",
    "duplicates": "rows read again, to prove that none was missed; each is in the table once",
    "conflicts": "of the rows in quarantine, those with the key of another row and other values",
    "manifest": "the file of the archive that lists the pages read",
    "ended_at": "when the list was read to its end",
    "folded_at": "when the pages became these rows",
    "version": "the number in the name of this file",
}


@dataclass(frozen=True)
class Fold:
    """One manifest folded into the tables, in rows; `number` counts the folds of its stream.

    Of those `read`, `quarantined` are set aside and `duplicates` were replaced by a newer read of
    the same; `conflicts` of the quarantined have the key of another record and other values. `rows`
    are in `current` then, `missing` of them not read. Versions: `added` began, `changed` and
    `restated` (another number) ended and began, `gone` ended as they were missing twice.
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
    added: int
    changed: int
    restated: int
    gone: int
    missing: int
    folded_at: datetime


Held = Mapping[tuple[str, str], Fold]


def prepare(database: duckdb.DuckDBPyConnection) -> None:
    """Create `meta.folds` where it is not there."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(FOLDS)


def record(database: duckdb.DuckDBPyConnection, fold: Fold) -> None:
    """Say what a stream's tables are made of now."""
    marks = ", ".join("?" * len(fields(Fold)))
    database.execute(f"INSERT INTO meta.folds VALUES ({marks})", list(astuple(fold)))


def folds(
    database: duckdb.DuckDBPyConnection, connections: Collection[str] | None = None
) -> list[Fold]:
    """Return every fold, those of some connections where they are named: in order, by stream."""
    own = "" if connections is None else f"WHERE connection IN ({listed(connections)})"
    return _rows(database, f"SELECT * FROM meta.folds {own} ORDER BY stream, number")


def folded(database: duckdb.DuckDBPyConnection, manifest: str) -> Fold | None:
    """Return the fold of a manifest, None where it is not folded."""
    found = _rows(database, "SELECT * FROM meta.folds WHERE manifest = ?", [manifest])
    return found[0] if found else None


def newest(database: duckdb.DuckDBPyConnection, connection: str, stream: str) -> Fold | None:
    """Return the last fold of a stream's list, None where none was folded."""
    query = f"{LIST} ORDER BY number DESC LIMIT 1"
    found = _rows(database, query, [connection, stream])
    return found[0] if found else None


def next_number(database: duckdb.DuckDBPyConnection, stream: str) -> int:
    """Return the number of a stream's next fold, whatever its connection."""
    query = "SELECT coalesce(max(number), 0) + 1 FROM meta.folds WHERE stream = ?"
    return scalar(database, query, [stream])


def held(database: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], Fold]:
    """Return what the tables are made of: the newest fold of every connection and stream."""
    return {(fold.connection, fold.stream): fold for fold in _rows(database, NEWEST)}


def _rows(
    database: duckdb.DuckDBPyConnection, query: str, values: Sequence[object] = ()
) -> list[Fold]:
    if not exists(database, "meta", "folds"):
        return []
    return [Fold(*row) for row in database.execute(query, list(values)).fetchall()]


def verify(database: duckdb.DuckDBPyConnection, held: Held, remedy: str = "") -> None:
    """Raise WarehouseDamaged where a stream does not hold what was folded, set aside included.

    A few statements a stream, of however many connections. `remedy` says what to do then.
    """
    streams = defaultdict[str, list[Fold]](list)
    for fold in held.values():
        streams[fold.stream].append(fold)
    for stream, folds in streams.items():
        connections = [fold.connection for fold in folds]
        found = {each: _counts(database, (each, stream), connections) for each in COUNTED}
        asked = {"stream": stream, "connections": connections}
        ended = dict(database.execute(ENDED, asked).fetchall())
        for fold in folds:
            there = {schema: counts.get(fold.connection, 0) for schema, counts in found.items()}
            if fault := _fault(fold, there, ended.get(fold.connection, 0)):
                words = f"{fault}; what analysts open stays as it was. {remedy}"
                raise WarehouseDamaged(f"{words}." if remedy else words.rstrip())


def _fault(fold: Fold, there: Mapping[str, int], ended: int) -> str:
    wanted = dict(zip(COUNTED, (fold.rows, ended, fold.quarantined), strict=True))
    if there == wanted:
        return ""
    return (
        f"{fold.stream} of {fold.connection} holds {_told(there)} rows, but {_told(wanted)} were "
        "folded"
    )


def _counts(
    database: duckdb.DuckDBPyConnection, table: tuple[str, str], connections: Sequence[str]
) -> dict[str, int]:
    if not exists(database, *table):
        return {}
    counts = f"SELECT _connection, count(*) FROM {quoted(*table)}"
    wanted = "WHERE list_contains($connections, _connection) GROUP BY ALL"
    given = {"connections": connections}
    return dict(database.execute(f"{counts} {wanted}", given).fetchall())


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} in {schema}" for schema, count in counts.items())


def tell(database: duckdb.DuckDBPyConnection, version: int, now: datetime) -> None:
    """Write `meta.freshness`: what each stream of a version is made of."""
    database.execute(FRESHNESS, {"now": now, "version": version})
    comments = COMMENTS.items()
    together(
        database,
        (f"COMMENT ON COLUMN meta.freshness.{name} IS '{text}'" for name, text in comments),
    )
