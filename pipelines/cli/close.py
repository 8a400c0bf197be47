"""Commands for months that are signed off."""

import getpass
from datetime import datetime
from typing import Annotated

import typer

from pipelines import app
from pipelines.cli.program import Json, NoBuild, Reason, close
from pipelines.cli.terminal import line, note, opened, show, show_and_build

Month = Annotated[datetime, typer.Argument(formats=["%Y-%m"], help="Month, such as 2026-09.")]
COLUMNS = (
    *("month", "number", "state", "changed_records", "net_difference", "preparer", "reviewer"),
    *("closed_at", "note"),
)


@close.command("month")
def close_month(
    month: Month,
    *,
    preparer: Annotated[str, typer.Option(help="Who prepared the close.")],
    reviewer: Annotated[str, typer.Option(help="Who reviewed it: another person.")],
    remark: Annotated[str, typer.Option("--note", help="Note that the copy keeps.")] = "",
    no_build: NoBuild = False,
) -> int:
    """Sign off a month: copy its records, breaks and figures; later changes are corrections."""
    with opened() as session:
        signing = app.close.Signing(month.date(), preparer, reviewer, remark)
        text = app.close.close_month(session, signing, note)
        return show_and_build(session, text, no_build=no_build)


@close.command()
def reopen(month: Month, *, reason: Reason, no_build: NoBuild = False) -> int:
    """Open a closed month again. Its copy stays."""
    with opened() as session:
        text = app.close.reopen_month(session, month.date(), getpass.getuser(), reason)
        return show_and_build(session, text, no_build=no_build)


@close.command("list")
def list_closes(*, json: Json = False) -> None:
    """List closed months, and whether their records are still as they were signed off."""
    with opened() as session:
        rows = app.close.list_closes(session)
    show(rows, COLUMNS, as_json=json)
    if not json:
        for problem in sorted({row["problem"] for row in rows if row["problem"]}):
            line(problem, style="yellow")
        if not rows:
            line("No month is closed.")
