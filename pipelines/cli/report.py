"""The verb `report`: the reports of what is published, as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen

app = typer.Typer()


@app.command()
def report(
    out: Annotated[
        Path | None, typer.Option(help="The file; in reports/ of the home if not named.")
    ] = None,
) -> None:
    """Write the reports of the published file as one HTML file that opens without a network."""
    made = run.report(settings.load().place, out)
    screen.OUT.print(
        escape(f"report of {made.version}: {made.file} ({made.size:,} bytes)"), soft_wrap=True
    )
