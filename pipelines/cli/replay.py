"""The verb `replay`: the tables made once more from the archive, without a request."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen

app = typer.Typer()
DAY = ["%Y-%m-%d"]


@app.command()
def replay(
    first: Annotated[datetime, typer.Option("--from", formats=DAY, help="The first day.")],
    last: Annotated[
        datetime | None, typer.Option("--to", formats=DAY, help="The last day; else the newest.")
    ] = None,
) -> None:
    """Fold days again, with all later ones and every decision, and publish. Sends nothing."""
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session:
        until = last.replace(tzinfo=UTC).date() if last else None
        replayed = run.replay(session, first.replace(tzinfo=UTC).date(), until)
        version = run.publish_folded(session)
    for day in replayed.unread:
        screen.OUT.print(f"{day}: was never read, and stays unknown")
    for words in replayed.errors:
        screen.ERR.print(escape(words), soft_wrap=True)
    for (connection, stream), fold in replayed.folds.items():
        rows = getattr(fold, "rows", None)
        if rows is not None:
            screen.OUT.print(escape(f"{connection}/{stream}: {rows:,} rows"))
    if version is None:
        raise typer.Exit(1)
    screen.OUT.print(f"published as {version.file}")
    if replayed.errors:
        raise typer.Exit(3)
