"""Commands for people who work with the rows: mapping, closes, exports and the report."""

import getpass
import webbrowser
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from pipelines import app
from pipelines.cli.program import FINANCE, Json, NoBuild, Reason, close, mapping, program
from pipelines.cli.terminal import (
    line,
    opened,
    print_json,
    show,
    show_and_build,
    show_table,
)
from pipelines.core.errors import ExitCode

Month = Annotated[datetime, typer.Argument(formats=["%Y-%m"], help="Month, such as 2026-09.")]
CLOSES = (
    *("month", "number", "state", "changed_records", "net_difference", "preparer", "reviewer"),
    *("closed_at", "note"),
)
EXPORTS = ("table", "rows", "numbers_as_text", "exported_to")
NUMBERS_AS_TEXT = (
    "Excel keeps 15 digits of a number. Longer ones are text in the columns named above, so that "
    "none is rounded. SUM ignores text."
)


@mapping.command()
def propose(*, _json: Json = False) -> int:
    """Propose a field for each role in reconciliation, and show the evidence."""
    with opened() as session:
        rows = app.mapping.propose(session)
    show(rows, [name for name in rows[0] if any(row[name] for row in rows)])
    line("Run `partner-sync mapping accept` to use these fields.")
    return ExitCode.NEEDS_ATTENTION if any(row["problem"] for row in rows) else ExitCode.DONE


@mapping.command()
def accept(
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a mapping.toml that differs.")
    ] = False,
    no_build: NoBuild = False,
) -> int:
    """Write the proposed fields to mapping.toml, then build a version with them."""
    with opened() as session:
        text = app.mapping.accept(session, replace=replace)
        return show_and_build(session, text, no_build=no_build)


@close.command("month")
def close_month(
    month: Month,
    *,
    preparer: Annotated[str, typer.Option(help="Who prepared the close.")],
    reviewer: Annotated[str, typer.Option(help="Who reviewed it; another person.")],
    remark: Annotated[str, typer.Option("--note", help="Note to keep with the copy.")] = "",
    no_build: NoBuild = False,
) -> int:
    """Sign off a month and copy it. Later changes are posted as corrections."""
    with opened() as session:
        signing = app.close.Signing(month.date(), preparer, reviewer, remark)
        text = app.close.close_month(session, signing)
        return show_and_build(session, text, no_build=no_build)


@close.command()
def reopen(month: Month, *, reason: Reason, no_build: NoBuild = False) -> int:
    """Reopen a closed month. Its copy stays."""
    with opened() as session:
        text = app.close.reopen_month(session, month.date(), getpass.getuser(), reason)
        return show_and_build(session, text, no_build=no_build)


@close.command("list")
def list_closes(*, _json: Json = False) -> None:
    """List closed months, and whether their records have changed since the sign-off."""
    with opened() as session:
        rows = app.close.list_closes(session)
    show(rows, CLOSES, none="No month is closed.")
    for problem in sorted({row["problem"] for row in rows if row["problem"]}):
        line(problem, style="yellow")


@program.command(rich_help_panel=FINANCE)
def export(
    target: Annotated[
        str,
        typer.Argument(help="csv, parquet, xlsx, dbt, or a variable that holds a database URL."),
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
    _json: Json = False,
) -> None:
    """Export tables of the published version to files or a database, with exact amounts."""
    with opened() as session:
        rows = app.export.export_tables(session, target, table or (), folder)
    show(rows, EXPORTS)
    if any(row["numbers_as_text"] for row in rows):
        line(NUMBERS_AS_TEXT, style="yellow")


@program.command(rich_help_panel=FINANCE)
def report(
    *,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    _json: Json = False,
) -> None:
    """Write the finance report of the published version as one HTML page."""
    with opened() as session:
        figures = app.report.read_published(session)
        file = app.report.write_report(session, figures)
    rows = app.report.key_figures(figures)
    found = {"version": figures.version, "file": str(file), "currencies": rows}
    print_json(found | {"problem": figures.problem or None})
    show_table(rows)
    if figures.problem:
        line(f"Usage is not compared with billing. {figures.problem}", style="yellow")
    line(f"Report of version {figures.version}: {file}")
    if open_page:
        webbrowser.open(file.as_uri())
