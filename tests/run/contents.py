"""All that analysts can read of a home: what two homes of the same nights have in common.

Here: every value and type of the published file. Not here: the homes (kept_nights, nights).
"""

from typing import Any

import duckdb

from pipelines import run
from pipelines.run import Session
from pipelines.settings import Home
from pipelines.warehouse import published

OWN = {"folded_at", "published_at", "version"}  # of the act, not of the nights
OF_RUNS = "('runs', 'requests')"
Content = dict[str, list[tuple[Any, ...]]]


def content(session: Session) -> Content:
    """Publish what is folded; return every value and type, but for what each run has of its own."""
    run.publish_folded(session)
    return opened(session.settings.place)


def opened(home: Home) -> Content:
    """Return the same of the file that analysts open as it is."""
    with published.opened(home) as analysts:
        reader = analysts.database
        names = reader.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name <> 'meta' OR "
            f"table_name NOT IN {OF_RUNS} UNION ALL SELECT schema_name, view_name FROM "
            "duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        return {f"{schema}.{name}": _rows(reader, f'{schema}."{name}"') for schema, name in names}


def _rows(reader: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    columns = reader.execute(f"DESCRIBE {table}").fetchall()
    names = ", ".join(f'"{name}"' for name, *_rest in columns if name not in OWN)
    kinds = [(name, kind) for name, kind, *_rest in columns]
    return [*kinds, *reader.execute(f"SELECT {names} FROM {table} ORDER BY ALL").fetchall()]
