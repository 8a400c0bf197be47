"""`demo` and `sandbox`: a local copy of the service, and the whole job on it."""

import os
import shutil
import sys
import time
from pathlib import Path

import duckdb
import pandas as pd

from pipelines.app.mapping import accept
from pipelines.app.report import read_published, write_report
from pipelines.app.results import ReadRequest
from pipelines.app.sandbox import running_sandbox
from pipelines.app.sync import build_version
from pipelines.cli.terminal import OUT, line, opened, run_sync, shown_progress
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
    "What should be looked at first?": """
        SELECT severity, partner, month, currency, cause, difference
        FROM finance.open_breaks
        ORDER BY severity <> 'high', abs(difference) DESC, partner
        LIMIT 5
    """,
}


def sandbox(arguments: list[str]) -> None:
    """Serve until a signal comes, as `python -m sandbox` with the same arguments."""
    os.execv(sys.executable, [sys.executable, "-m", "sandbox", *arguments])  # noqa: S606 - our own program


def demo(folder: str) -> int:
    """Sync the sandbox into an empty home, reconcile it, answer three questions."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]  # the demo uses no setting of the user
    home, began = Home(_emptied(Path(folder)).absolute()).prepare(), time.monotonic()
    with running_sandbox(home, "demo", "--port=0", *SIZES), opened(home) as session:
        code = run_sync(session, [ReadRequest("demo")], build_version)
        line(accept(session))
        with shown_progress() as progress:
            build_version(session, progress)
        answer(home.link)
        line(f"The finance report: {write_report(session, read_published(session))}")
    line(f"The demo took {time.monotonic() - began:.0f} seconds.")
    return code


def answer(link: Path) -> None:
    """Print the answers as pandas frames of exact values."""
    with duckdb.connect(link, read_only=True) as db:
        for question, sql in QUESTIONS.items():
            line(question, style="bold")
            OUT.print(exact_frame(db, sql).to_string(index=False), markup=False)
            OUT.print()


def exact_frame(db: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    """Return a query's rows as a frame of Python objects: `.df()` would make decimals floats."""
    found = db.sql(sql)
    rows = [
        [printable(each) if isinstance(each, str) else each for each in row]
        for row in found.fetchall()
    ]
    return pd.DataFrame(rows, columns=found.columns, dtype=object)


def _emptied(folder: Path) -> Path:
    """Empty a home that an earlier demo made. Raises ConfigurationError for any other folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / MARKER).exists():
            raise ConfigurationError(
                f"{folder} was not made by a demo, so it is not emptied.",
                "Name another folder: partner-sync demo --home FOLDER",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()
    return folder
