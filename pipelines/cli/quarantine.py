"""The verbs `quarantine` and `quarantine accept`: rows read that no table can hold."""

import getpass
from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen, waiting
from pipelines.run import Word
from pipelines.state.decisions import Kind

app = typer.Typer()
group = typer.Typer(help="Rows that were read and that no table can hold.")
app.add_typer(group, name="quarantine")


@group.callback(invoke_without_command=True)
def quarantine(context: typer.Context) -> None:
    """List the rows set aside: page, row, field, expected, got; and what awaits a word."""
    if context.invoked_subcommand is not None:
        return
    with run.open(settings.load()) as session:
        found = run.set_aside(session)
    screen.show(found.rows) if found.rows else screen.OUT.print("no rows are set aside")
    waiting.show(found.awaiting)


@group.command()
def accept(
    stream: str,
    connection: Annotated[str, typer.Option(help="Of which connection.")] = "default",
    note: Annotated[str, typer.Option(help="Why; kept with your name.")] = "",
) -> None:
    """Let the newest reading be folded without the rows that no table can hold; publish it.

    Recorded with your name and the manifest; every replay applies it there. Sends nothing.
    """
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session:
        word = Word(stream, connection, getpass.getuser(), note)
        held, publication = run.accept_waiting(session, Kind.QUARANTINE, word)
    raise typer.Exit(waiting.accepted(held, publication))
