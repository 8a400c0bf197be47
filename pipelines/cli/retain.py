"""The verb `retain`: keep the last readings of each list, and the rest as a base snapshot."""

import getpass
from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen

app = typer.Typer()


@app.command()
def retain(
    keep: Annotated[
        int | None, typer.Option(min=1, help="Readings kept of each list; as set by default.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who decides; the user of this machine.")] = None,
) -> None:
    """Drop archived readings older than the last ones; the tables keep all that they have."""
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session:
        retained = run.retain(session, keep or own.keep_readings, by or getpass.getuser())
    screen.OUT.print(retained.words, markup=False, soft_wrap=True)
