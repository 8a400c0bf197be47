"""What a home's ledger tells of a run in Dagster, and nights of earlier days.

Here: reading and making them. Not here: what is expected of them.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines import run, settings
from pipelines.clock import Clock

LINKED = """
SELECT scans.connection, scans.stream, pages."offset" FROM pages JOIN scans USING (scan)
WHERE scans.day = ? AND pages."offset" > 0
"""
ASKED = """
SELECT runs.connection, stream, CAST(substr(query, instr(query, 'offset=') + 7) AS INTEGER)
FROM requests JOIN runs USING (run) WHERE number > ? AND stream IS NOT NULL
"""
Place = tuple[str, str, int]


def query(home: Path, sql: str, *values: Any) -> list[Any]:
    """Ask a ledger; one that was not begun holds nothing."""
    file = home / "state" / "state.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as ledger:
        tables = ledger.execute("SELECT name FROM sqlite_master WHERE name = 'pages'").fetchall()
        return ledger.execute(sql, values).fetchall() if tables else []


def linked(home: Path) -> set[Place]:
    """Return the pages of today that are linked, but for each list's first, which is an anchor."""
    return set(query(home, LINKED, datetime.now(UTC).date().isoformat()))


def requests(home: Path) -> int:
    """Return the number of the last request."""
    return int((query(home, "SELECT coalesce(max(number), 0) FROM requests") or [(0,)])[0][0])


def asked(home: Path, after: int) -> set[Place]:
    """Return the pages that were asked for after a request."""
    return set(query(home, ASKED, after))


def nights(home: Path, environment: Mapping[str, str], days: int) -> list[str]:
    """Sync every connection on so many days before today; return those days, the oldest first."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment, "PARTNER_SYNC_HOME": str(home)}.items():
            patch.setenv(name, value)
        return [_night(back) for back in range(days, 0, -1)]


def _night(back: int) -> str:
    def then() -> datetime:
        return datetime.now(UTC) - timedelta(days=back)

    with run.open(settings.load(), clock=Clock(now=then)) as session:
        assert run.sync(session, run.orders(session)).exit_code == 0
    return then().date().isoformat()
