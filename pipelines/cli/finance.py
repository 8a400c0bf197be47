"""Commands for people who work with the rows."""

from typing import Annotated, Any

import typer

from pipelines import app
from pipelines.cli.program import FINANCE, Connection, Json, program
from pipelines.cli.terminal import line, print_json, shown
from pipelines.core.errors import ExitCode


@program.command(rich_help_panel=FINANCE)
def trace(
    connection: Connection,
    stream: Annotated[str, typer.Argument(help="Stream of the record.")],
    key: Annotated[str, typer.Argument(help="Its key: `_key` of the row.")],
    *,
    json: Json = False,
) -> int:
    """Show every version of a record, its request, and the bytes that the service sent."""
    with app.session.open_session() as session:
        found = app.trace.trace(session, connection, stream, key)
    print_json(found) if json else _show_trace(found)
    is_proven = all(each["proven"] for each in (*found["versions"], *found["quarantine"]))
    return ExitCode.DONE if is_proven else ExitCode.NEEDS_ATTENTION


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
    values = (f"{name.replace('_', ' ')} {shown(each[name])}" for name in names)
    line(f"  request: {', '.join(values)}")


def _show_evidence(each: dict[str, Any]) -> None:
    line(f"  {each['message']}", each["remedy"], style="" if each["proven"] else "red")
    raw = each["raw"] or each.get("text", "")
    line(raw, longest=len(raw))
