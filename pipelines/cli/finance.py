"""Commands for people who work with the rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines import app
from pipelines.cli.program import FINANCE, Connection, Json, program
from pipelines.cli.terminal import line, opened, print_json, show, shown, shown_progress
from pipelines.core.errors import ExitCode

COLUMNS = ("table", "rows", "numbers_as_text", "exported_to")
NUMBERS_AS_TEXT = (
    "Excel keeps 15 digits of a number. Longer ones are text in the columns named above, so that "
    "none is rounded. SUM ignores text."
)


@program.command(rich_help_panel=FINANCE)
def trace(
    connection: Connection,
    stream: Annotated[str, typer.Argument(help="Stream of the record.")],
    key: Annotated[str, typer.Argument(help="Its key: `_key` of the row.")],
    *,
    json: Json = False,
) -> int:
    """Show every version of a record, its request, and the bytes that the service sent."""
    with opened() as session:
        found = app.trace.trace(session, connection, stream, key)
    print_json(found) if json else _show_trace(found)
    is_proven = all(each["proven"] for each in (*found["versions"], *found["quarantine"]))
    return ExitCode.DONE if is_proven else ExitCode.NEEDS_ATTENTION


@program.command(rich_help_panel=FINANCE)
def export(
    target: Annotated[
        str, typer.Argument(help="csv, parquet, xlsx, or NAME of a variable with a database URL.")
    ],
    *,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="schema.table; repeatable. Default: all of current."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="New folder for the files. Default: in the home.")
    ] = None,
    json: Json = False,
) -> None:
    """Export tables of the published version to files or a database; amounts stay exact."""
    with opened() as session, shown_progress() as progress:
        request = app.export.ExportRequest(target, table or (), folder)
        rows = app.export.export_tables(session, request, progress)
    show(rows, COLUMNS, as_json=json)
    if not json and any(row["numbers_as_text"] for row in rows):
        line(NUMBERS_AS_TEXT, style="yellow")


def _show_trace(found: dict[str, Any]) -> None:
    place = f"{found['connection']}/{found['stream']}"
    line(f"Record {found['key']} of {place} in version {found['version']}:")
    for each in found["versions"]:
        ended = (
            f"until {shown(each['valid_to'])} ({each['end_reason']})" if each["valid_to"] else ""
        )
        _show_origin(f"From {shown(each['valid_from'])} {ended or 'until now'}", each)
        line(f"  digest: {each['digest']}")
        _show_evidence(each)
    for each in found["quarantine"]:
        _show_origin(f"In quarantine: {each['reason']}", each)
        _show_evidence(each)


def _show_origin(title: str, each: dict[str, Any]) -> None:
    line(title, style="bold")
    line(f"  scan file: {each['file']}, page {each['page']}, row {each['row']}")
    names = ("offset", "limit", "sent_at", "received_at", "status", "request_id")
    known = (name for name in names if each[name] is not None)
    values = (f"{name.replace('_', ' ')} {shown(each[name])}" for name in known)
    line(f"  request: {', '.join(values)}")


def _show_evidence(each: dict[str, Any]) -> None:
    line(f"  {each['message']}", each["remedy"], style="" if each["proven"] else "red")
    raw = each["raw"] or each.get("text", "")
    line(raw, longest=len(raw))
