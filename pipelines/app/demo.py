"""The home of `partner-sync demo`, and the questions that its warehouse answers."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd

from pipelines.config.home import Home
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable

MARKER = ".partner-sync-demo"
SIZES = ("--partners=250", "--usage=20000", "--billing=3000", "--plant")
QUESTIONS = {
    "Is every list complete, and as of when?": """
        SELECT stream, rows, complete, method, ended_at FROM meta.completeness ORDER BY stream
    """,
    "Does billing agree with usage? The last three months that are over:": """
        SELECT month, currency, used, billed, credited, difference, open_breaks
        FROM finance.month_totals
        WHERE month BETWEEN '2026-08-01' AND '2026-10-01' AND currency IN ('EUR', 'USD')
        ORDER BY month, currency
    """,
    "Which breaks are the most urgent?": """
        SELECT severity, partner, month, currency, cause, difference
        FROM finance.open_breaks
        ORDER BY severity <> 'high', abs(difference) DESC, partner
        LIMIT 5
    """,
}


def prepare_home(folder: Path) -> Home:
    """Return an empty home; no setting of the user's environment counts from now on.

    Empties what an earlier demo made. Raises ConfigurationError for any other folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / MARKER).exists():
            raise ConfigurationError(
                f"{folder} was not created by a demo, so it is not emptied.",
                "Run `partner-sync demo --home FOLDER` with another folder.",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    return Home(folder.absolute()).prepare()


def answers(link: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each question and its answer: rows of Python objects (`.df()` would make floats)."""
    with duckdb.connect(link, read_only=True) as db:
        for question, sql in QUESTIONS.items():
            found = db.sql(sql)
            rows = [
                [printable(each) if isinstance(each, str) else each for each in row]
                for row in found.fetchall()
            ]
            yield question, pd.DataFrame(rows, columns=found.columns, dtype=object)
