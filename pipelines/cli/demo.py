"""`demo` and `sandbox`: a local copy of the service, and the whole job on it."""

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pandas as pd
import typer

from pipelines.app.session import open_session
from pipelines.app.sync import ReadRequest
from pipelines.app.sync import sync as run_sync
from pipelines.cli import render
from pipelines.cli.progress import shown_progress
from pipelines.cli.sync import show_sync
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.files import write_durably

MARKER = ".partner-sync-demo"
SIZES = ("--partners=250", "--usage=20000", "--billing=2000")
QUESTIONS = {
    "Is every list complete, and as of when?": """
        SELECT stream, rows, complete, method, ended_at FROM meta.completeness ORDER BY stream
    """,
    "Who was billed most in each currency?": """
        WITH billed AS (
            SELECT
                billing.currency,
                partners.name AS partner,
                sum(billing.total) AS billed,
                count(*) AS bills
            FROM current.billing AS billing
            JOIN current.partners AS partners ON partners.partner_id = billing.partner_id
            GROUP BY billing.currency, partners.partner_id, partners.name
        )
        SELECT billed.*
        FROM billed
        QUALIFY row_number() OVER (PARTITION BY billed.currency ORDER BY billed.billed DESC) = 1
        ORDER BY billed.currency
    """,
    "Which are the largest amounts, to the last digit?": """
        SELECT usage.amount, usage.currency, usage.reference
        FROM current.usage AS usage
        ORDER BY usage.amount DESC
        LIMIT 3
    """,
}


def sandbox(arguments: list[str]) -> None:
    """Serve until a signal comes, as `python -m sandbox` with the same arguments."""
    command = [sys.executable, "-m", "sandbox", *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - our own program


def demo(folder: str) -> None:
    """Sync the sandbox into an empty home and answer three questions."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]  # the demo uses no setting of the user
    home, began = Home(_emptied(Path(folder)).absolute()).prepare(), time.monotonic()
    with running_sandbox(home, *SIZES), open_session(home) as session:
        with shown_progress() as progress:
            result = run_sync(session, [ReadRequest("demo")], progress)
        show_sync(session, result)
    if result.build is not None and result.build.version is not None:
        answer(home.link)
    render.line(f"The demo took {time.monotonic() - began:.0f} seconds.")
    raise typer.Exit(int(result.exit_code))


@contextmanager
def running_sandbox(home: Home, *options: str) -> Iterator[str]:
    """Start a sandbox for the block and write the connection `demo` for it; yield its address."""
    secret = secrets.token_urlsafe()
    secret_file = home.root / "config" / "demo-secret"
    write_durably(secret_file, secret.encode())
    environment = os.environ | {"SANDBOX_CLIENT_SECRET": secret}
    command = [sys.executable, "-m", "sandbox", "--port=0", *options]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            ready = process.stdout.readline() if process.stdout else ""
            found = re.search(r"(https?://\S+).*audience ([^,]+),", ready)
            if found is None:
                raise PartnerSyncError("The sandbox did not start; its output is above.")
            fields = {
                "base_url": found[1],
                "auth_url": found[1],
                "audience": found[2],
                "client_id": "demo",
                "secret_file": str(secret_file),
            }
            add_connection(home.connections_file, "demo", fields)
            yield found[1]
        finally:
            process.terminate()


def answer(link: Path) -> None:
    """Print the answers as pandas frames of exact values."""
    with duckdb.connect(link, read_only=True) as db:
        for question, sql in QUESTIONS.items():
            render.line(question, style="bold")
            render.OUT.print(exact_frame(db, sql).to_string(index=False), markup=False)
            render.OUT.print()


def exact_frame(db: duckdb.DuckDBPyConnection, sql: str) -> pd.DataFrame:
    """Return a query's rows as a frame of Python objects: `.df()` would make decimals floats."""
    found = db.sql(sql)
    return pd.DataFrame(found.fetchall(), columns=found.columns, dtype=object)


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
