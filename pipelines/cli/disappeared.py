"""The verbs `disappeared` and `disappeared accept`: readings that lack too many rows."""

import typer

from pipelines import run, settings
from pipelines.cli import screen, waiting
from pipelines.state.decisions import Kind

app = typer.Typer()
group = typer.Typer(help="Readings that are held back as too many rows are gone.")
app.add_typer(group, name="disappeared")


@group.callback(invoke_without_command=True)
def disappeared(context: typer.Context) -> None:
    """List the readings that are held back, and how many rows each lacks; sends nothing."""
    if context.invoked_subcommand is not None:
        return
    with run.open(settings.load()) as session:
        found = run.waiting(session, Kind.DISAPPEARED)
    waiting.show(found) if found else screen.OUT.print("nothing is held back")


@group.command()
def accept(
    stream: str, connection: waiting.Connection = "default", note: waiting.Note = ""
) -> None:
    """Say that the rows which the newest reading lacks are truly gone; fold and publish it.

    Recorded with your name and the manifest; every replay applies it there. Sends nothing.
    """
    waiting.accept(Kind.DISAPPEARED, stream, connection, note)
