"""The verb `export`: tables of the published file in other formats and databases."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import destinations, settings
from pipelines.cli import screen
from pipelines.destinations import Export

FORMATS = ", ".join(each.name for each in destinations.DESTINATIONS if each.files)
app = typer.Typer()


@app.command()
def export(
    table: Annotated[
        list[str] | None,
        typer.Argument(help="As current.usage; all of current and history where none is named."),
    ] = None,
    to: Annotated[
        str,
        typer.Option(help=f"{FORMATS}, or the NAME of a variable that holds a database's URL."),
    ] = "parquet",
    out: Annotated[
        Path | None, typer.Option(help="The folder for files; exports/ in the home if not named.")
    ] = None,
) -> None:
    """Write tables of the published file as files or into a database, whole or not at all."""
    own = settings.load()
    _tell(destinations.export(own.place, table or (), to, out, own.clock))


def _tell(made: Export) -> None:
    for each in made.written:
        line = f"{each.table}: {each.rows:,} rows in {each.place}"
        screen.OUT.print(escape(line), soft_wrap=True)
        for note in each.notes:
            screen.ERR.print(f"[yellow]…[/] {escape(note)}", soft_wrap=True)
    screen.OUT.print(escape(f"exported {made.version} to {made.place}"), soft_wrap=True)
