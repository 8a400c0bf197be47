"""The verb `sync`: read today's lists, fold them, publish them."""

from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Choice, Lane

Streams = Annotated[list[str] | None, typer.Option(help="This stream only; may be repeated.")]
Connections = Annotated[
    list[str] | None, typer.Option(help="This connection only; may be repeated.")
]
app = typer.Typer()


@app.command()
def sync(
    stream: Streams = None,
    connection: Connections = None,
    lane: Annotated[
        Lane, typer.Option(help="Whose turn it is where runs share a limit: nightly 4, adhoc 1.")
    ] = Lane.ADHOC,
) -> None:
    """Read today's lists, fold and publish them. Exit codes: 0, 1, 2, 3 as in the README.

    A list whose reading was interrupted less than 6 hours ago is read on from where it stood.
    """
    own = settings.load()
    choice = Choice(connection or (), stream or (), lane)
    with screen.watching(own) as watch, run.open(own, watch) as session, run.alerted(session):
        outcome = run.sync(session, run.orders(session, choice))
    screen.closing(outcome, own.place)
    raise typer.Exit(outcome.exit_code)
