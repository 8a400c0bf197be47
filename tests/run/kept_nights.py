"""Homes of several nights for tests of keeping house: folded, published, and what they hold.

Here: making them and reading all that their tables say. Not here: erasing or retaining.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import archived
from pipelines import run
from pipelines.run import Session

STREAMS = ("offices", "events")
TIMES = {"folded_at", "recorded_at"}


@contextmanager
def home(root: Path) -> Iterator[Session]:
    """Open a home of two lists."""
    with run.open(archived.settings(root, STREAMS)) as session:
        yield session


def night(
    session: Session, number: int, partners: Sequence[str], superseded: Sequence[str] = ()
) -> None:
    """Read, fold and publish one night: every partner, and a row of usage for each of them.

    `superseded` are partners that were read before the length check of their list.
    """
    own, before = (
        [json.dumps({"id": each, "tags": [{"of": each}], "night": number}) for each in some]
        for some in (partners, superseded)
    )
    rows = [
        json.dumps({"id": f"u-{each[-6:]}", "partner": {"id": each}, "amount": f"{number}.50"})
        for each in partners
    ]
    archived.counted_night(session, "offices", number, before, own)
    archived.night(session, "events", number, rows)
    (order,) = archived.orders(session, STREAMS)
    folded = run.fold(session, order)
    assert not [each for each in folded.values() if isinstance(each, Exception)]
    run.publish(session, [order])


def everything(session: Session) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows and types of the tables of records, and every fold but its own time."""
    with session.work.writing() as writer:
        tables = writer.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            "WHERE schema_name IN ('current', 'past', 'quarantine') "
            "OR table_name IN ('folds', 'registry') ORDER BY ALL"
        ).fetchall()
        return {f"{schema}.{name}": _rows(writer, schema, name) for schema, name in tables}


def _rows(writer: duckdb.DuckDBPyConnection, schema: str, name: str) -> list[tuple[Any, ...]]:
    columns = writer.execute(f'DESCRIBE {schema}."{name}"').fetchall()
    names = ", ".join(f'"{column}"' for column, *_ in columns if column not in TIMES)
    kinds = [(column, kind) for column, kind, *_ in columns]
    return [
        *kinds,
        *writer.execute(f'SELECT {names} FROM {schema}."{name}" ORDER BY ALL').fetchall(),
    ]
