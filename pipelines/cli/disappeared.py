"""The verbs `disappeared` and `disappeared accept`: readings that lack too many rows."""

import getpass
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Word

app = typer.Typer()
group = typer.Typer(help="Readings that are held back as too many rows are gone.")
app.add_typer(group, name="disappeared")


@group.callback(invoke_without_command=True)
def disappeared(context: typer.Context) -> None:
    """List the readings that are held back, and how many rows each lacks; sends nothing."""
    if context.invoked_subcommand is not None:
        return
    with run.open(settings.load()) as session:
        rows = [dict(each.__dict__) for each in run.held_back(session)]
    screen.show(rows) if rows else screen.OUT.print("nothing is held back")


@group.command()
def accept(
    stream: str,
    connection: Annotated[str, typer.Option(help="Of which connection.")] = "default",
    note: Annotated[str, typer.Option(help="Why; kept with your name.")] = "",
) -> None:
    """Say that the rows which the newest reading lacks are truly gone; fold and publish it.

    Recorded with your name and the manifest; every replay applies it there. Sends nothing.
    """
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session:
        word = Word(stream, connection, getpass.getuser(), note)
        held, publication = run.accept_gone(session, word)
    screen.OUT.print(escape(f"{stream}: {held.gone:,} rows accepted as gone in {held.manifest}"))
    (lacking,) = publication.lacking
    for words in lacking:
        screen.ERR.print(escape(words), soft_wrap=True)
    if lacking or publication.version is None:
        raise typer.Exit(1 if publication.version is None else 3)
