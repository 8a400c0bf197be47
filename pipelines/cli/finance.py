"""Commands for people who work with the rows."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from pipelines import app
from pipelines.cli.program import FINANCE, Json, program
from pipelines.cli.terminal import line, opened, print_json, show, shown_progress

COLUMNS = ("table", "rows", "numbers_as_text", "exported_to")
NUMBERS_AS_TEXT = (
    "Excel keeps 15 digits of a number. Longer ones are text in the columns named above, so that "
    "none is rounded. SUM ignores text."
)


@program.command(rich_help_panel=FINANCE)
def export(
    target: Annotated[
        str,
        typer.Argument(help="csv, parquet, xlsx, dbt, or NAME of a variable with a database URL."),
    ],
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", help="schema.table, or schema; repeatable. Default: current."
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="New folder for the files. Default: in the home.")
    ] = None,
    json: Json = False,
) -> None:
    """Export tables of the published version to files or a database; amounts stay exact."""
    with opened() as session, shown_progress() as progress:
        rows = app.export.export_tables(session, progress, target, table or (), folder)
    show(rows, COLUMNS, as_json=json)
    if not json and any(row["numbers_as_text"] for row in rows):
        line(NUMBERS_AS_TEXT, style="yellow")


@program.command(rich_help_panel=FINANCE)
def report(
    *,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    json: Json = False,
) -> None:
    """Write the finance report of the published version as one HTML page."""
    with opened() as session:
        figures = app.report.read_published(session)
        file = app.report.write_report(session, figures)
    rows = app.report.key_figures(figures)
    if json:
        found = {"version": figures.version, "file": str(file), "currencies": rows}
        print_json(found | {"problem": figures.problem or None})
    else:
        show(rows)
        if figures.problem:
            line(f"Usage is not compared with billing. {figures.problem}", style="yellow")
        line(f"Report of version {figures.version}: {file}")
    if open_page:
        webbrowser.open(file.as_uri())
