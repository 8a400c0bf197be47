"""The verbs `schema` and `schema accept`: the columns of the tables, and what changed."""

from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen, waiting
from pipelines.state.decisions import Kind

app = typer.Typer()
group = typer.Typer(help="The columns of the tables, and what changed about them.")
app.add_typer(group, name="schema")


@group.callback(invoke_without_command=True)
def schema(
    context: typer.Context,
    stream: Annotated[str | None, typer.Option(help="This stream only.")] = None,
) -> None:
    """List every column with its type and source, what changed, and what awaits a word."""
    if context.invoked_subcommand is not None:
        return
    with run.open(settings.load()) as session:
        found = run.columns(session, stream)
    changes = [
        {
            "at (UTC)": f"{each.happened_at:%Y-%m-%d %H:%M}",
            "stream": each.stream,
            "change": each.words,
        }
        for each in found.changes
    ]
    for rows, title in ((found.columns, "columns"), (changes, "changes")):
        screen.show(rows, title) if rows else screen.OUT.print(f"no {title} yet")
    waiting.show(found.awaiting)


@group.command()
def accept(
    stream: str, connection: waiting.Connection = "default", note: waiting.Note = ""
) -> None:
    """Let a stream have the columns of its newest reading, or keys that are text; publish it.

    Recorded with your name and the manifest; every replay applies it there. Sends nothing.
    """
    waiting.accept(Kind.SCHEMA, stream, connection, note)
