"""A local copy of the service, the home of `partner-sync demo`, and what its warehouse answers."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.values import PREFIX, read_toml
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.files import write_durably
from pipelines.core.text import printable, quote_text

STOPPED = "Its output is above. If the port is taken, choose another one."
READY = re.compile(r"sandbox ready: (\S+) \(client ([^,]+), audience ([^,]+),")
# Only a folder with this file is emptied.
MARKER = ".partner-sync-demo"
SIZES = ("--partners=250", "--usage=20000", "--billing=3000", "--plant")
QUESTIONS = {
    "Is every list complete, and as of when?": """
        SELECT stream, rows, complete, method, ended_at FROM meta.completeness ORDER BY stream
    """,
    "Does billing agree with usage? The last three months that are over:": """
        SELECT month, currency, used, billed, credited, difference, open_breaks
        FROM books.finance.month_totals
        WHERE month BETWEEN '2026-08-01' AND '2026-10-01' AND currency IN ('EUR', 'USD')
        ORDER BY month, currency
    """,
    "Which breaks are the most urgent?": """
        SELECT severity, partner, month, currency, cause, difference
        FROM books.finance.open_breaks
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
    for name in list(os.environ):
        if name.startswith(PREFIX):
            del os.environ[name]
    return Home(folder.absolute()).prepare()


def answers(home: Home) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each question and its answer: rows of Python objects (`.df()` would make floats)."""
    with duckdb.connect(home.link, read_only=True) as db:
        db.execute(f"ATTACH {quote_text(str(home.books_link))} AS books (READ_ONLY)")
        for question, sql in QUESTIONS.items():
            result = db.sql(sql)
            rows = [[_safe(value) for value in row] for row in result.fetchall()]
            yield question, pd.DataFrame(rows, columns=result.columns, dtype=object)


def _safe(value: Any) -> Any:
    """Return a value whose text cannot control the terminal."""
    return printable(value) if isinstance(value, str) else value


@contextmanager
def running_sandbox(home: Home, name: str, *options: str) -> Iterator[str]:
    """Run `python -m sandbox` for the block, with a connection to it; yield its address."""
    secret = secrets.token_urlsafe()
    file = home.settings_file.with_name(f"{name}-secret")
    write_durably(file, secret.encode())
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "sandbox", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"SANDBOX_CLIENT_SECRET": secret},
        # Ctrl-C reaches this program alone, which ends the sandbox last.
        start_new_session=True,
    ) as process:
        try:
            ready = READY.match(process.stdout.readline() if process.stdout else "")
            if ready is None:
                raise PartnerSyncError("The sandbox did not start.", STOPPED)
            address, client_id, audience = ready.groups()
            if name not in read_toml(home.connections_file):
                fields = {
                    "base_url": address,
                    "auth_url": address,
                    "client_id": client_id,
                    "audience": audience,
                    "secret_file": str(file),
                }
                add_connection(home.connections_file, name, fields)
            yield address
        finally:
            process.terminate()
