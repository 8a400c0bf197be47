"""The verb `close`: a month signed off by two, opened again on purpose, and which there are."""

import getpass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.cli.breaks import LATER
from pipelines.errors import ConfigurationError
from pipelines.run import Session, Signing

app = typer.Typer()


@app.command()
def close(  # noqa: PLR0913, PLR0917 a signature of Typer's: one option a field
    month: Annotated[
        datetime | None, typer.Argument(formats=["%Y-%m"], help="2026-10; none: list them.")
    ] = None,
    preparer: Annotated[str, typer.Option(help="Who prepared the close.")] = "",
    reviewer: Annotated[str, typer.Option(help="Who reviewed it: somebody else.")] = "",
    reopen: Annotated[  # noqa: FBT002 an option of Typer's
        bool, typer.Option("--reopen", help="Open it again; its frozen copy stays.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="Who reopens; the user of this machine.")] = None,
    note: Annotated[str, typer.Option(help="Why; kept for good. Needed to reopen.")] = "",
) -> None:
    """Close a month: a frozen copy of its records, breaks and figures, with a hash of each.

    Refused before the month and its grace are over, and on lists not proven complete. What changes
    later never touches the copy: the month turns OUTDATED, and the change goes to corrections.
    """
    with run.open(settings.load()) as session:
        if month is None:
            _list(session)
            return
        person = (by or getpass.getuser()) if reopen else preparer
        signing = Signing(month.date(), person, reviewer, note)
        words = _reopened(session, signing) if reopen else run.close_month(session, signing).words
    for each in (words, LATER):
        screen.OUT.print(escape(each), soft_wrap=True)


def _reopened(session: Session, signing: Signing) -> str:
    if signing.reviewer:
        raise ConfigurationError("--reviewer goes with closing a month, not with --reopen")
    act = run.reopen_month(session, signing)
    kept = f"archive/closes/{act.month:%Y-%m}/{act.number:03}"
    return f"{act.month:%Y-%m} is open again; {kept} stays as it was signed off"


def _list(session: Session) -> None:
    rows: list[dict[str, Any]] = [
        {
            "month": f"{each.close.month:%Y-%m}",
            "copy": each.close.number,
            "state": each.state,
            "preparer": each.close.preparer,
            "reviewer": each.close.reviewer,
            "closed at (UTC)": f"{each.close.at:%Y-%m-%d %H:%M}",
            "records": each.close.records,
            "since": each.said,
            "note": each.close.note,
        }
        for each in run.closed_months(session)
    ]
    screen.show(rows) if rows else screen.OUT.print("no month is closed")
