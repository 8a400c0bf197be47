"""The verbs `quarantine` and `quarantine accept`: rows read that no table can hold."""

import typer

from pipelines import run, settings
from pipelines.cli import screen, waiting
from pipelines.state.decisions import Kind

SHOWN = {
    "stream": "stream",
    "_connection": "connection",
    "_key": "key",
    "_page": "page",
    "_row": "row",
    "path": "field",
    "expected": "expected",
    "got": "got",
    "remedy": "what to do",
}
app = typer.Typer()
group = typer.Typer(help="Rows that were read and that no table can hold.")
app.add_typer(group, name="quarantine")


@group.callback(invoke_without_command=True)
def quarantine(context: typer.Context) -> None:
    """List the rows set aside: where, field, expected, got, what to do; and what awaits a word."""
    if context.invoked_subcommand is not None:
        return
    with run.open(settings.load()) as session:
        found = run.set_aside(session)
    rows = [{shown: row[name] for name, shown in SHOWN.items()} for row in found.rows]
    screen.show(rows) if rows else screen.OUT.print("no rows are set aside")
    waiting.show(found.awaiting)


@group.command()
def accept(
    stream: str, connection: waiting.Connection = "default", note: waiting.Note = ""
) -> None:
    """Let the newest reading be folded without the rows that no table can hold; publish it.

    Recorded with your name and the manifest; every replay applies it there. Sends nothing.
    """
    waiting.accept(Kind.QUARANTINE, stream, connection, note)
