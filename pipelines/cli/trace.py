"""Commands that follow rows and figures back to what the service sent."""

from typing import Annotated, Any

import typer

from pipelines import app
from pipelines.cli.program import Connection, Json, trace
from pipelines.cli.terminal import line, opened, print_json, show_table, shown
from pipelines.core.errors import ExitCode

ROWS = ("part", "id", "amount", "from_raw", "file", "page", "row")
REQUEST = ("offset", "limit", "sent_at", "received_at", "status", "request_id")
SUMS = ("part", "connection", "partner", "currency", "published", "from_raw", "same")


@trace.command()
def record(
    connection: Connection,
    stream: Annotated[str, typer.Argument(help="Stream of the record.")],
    key: Annotated[str, typer.Argument(help="Its key: `_key` of the row.")],
    *,
    _json: Json = False,
) -> int:
    """Show every row version of a record, its request, and the bytes that the service sent."""
    with opened() as session:
        found = app.trace.trace(session, connection, stream, key)
    _show_trace(found)
    is_proven = all(each["proven"] for each in (*found["versions"], *found["quarantine"]))
    return ExitCode.DONE if is_proven else ExitCode.NEEDS_ATTENTION


@trace.command("break")
def trace_break(
    break_id: Annotated[str, typer.Argument(help="Identifier of the break.")],
    *,
    _json: Json = False,
) -> int:
    """Show the records of a break, and recalculate its amounts from what the service sent."""
    with opened() as session:
        found = app.trace_figure.trace_break(session, break_id)
    return _show_figure(found)


@trace.command()
def month(
    partner: Annotated[str, typer.Argument(help="Identifier or name of the partner.")],
    month: Annotated[str, typer.Argument(help="Month, such as 2026-09.")],
    *,
    currency: Annotated[str, typer.Option(help="Currency, such as EUR. Default: all.")] = "",
    _json: Json = False,
) -> int:
    """Show the records of a partner's month, and recalculate it from what the service sent."""
    with opened() as session:
        found = app.trace_figure.trace_month(session, partner, month, currency)
    return _show_figure(found)


def _show_figure(found: dict[str, Any]) -> int:
    """Print rows and sums; return the exit code."""
    print_json(found)
    for rows, columns in ((found["rows"], ROWS), (found["sums"], SUMS)):
        has_problem = any(each["problem"] for each in rows)
        show_table(rows, (*columns, "problem") if has_problem else columns)
    proven = f"Version {found['version']} has the same sums as the records of the service."
    problem = "A sum differs from the records of the service, or cannot be compared."
    line(proven) if found["same"] else line(problem, found["problem"], style="red")
    return ExitCode.DONE if found["same"] else ExitCode.NEEDS_ATTENTION


def _show_trace(found: dict[str, Any]) -> None:
    print_json(found)
    place = f"{found['connection']}/{found['stream']}"
    line(f"Record {found['key']} of {place} in version {found['version']}:")
    for each in found["versions"]:
        ended = f"{shown(each['valid_to'])} ({each['end_reason']})" if each["valid_to"] else "now"
        _show_evidence(f"From {shown(each['valid_from'])} until {ended}", each)
    for each in found["quarantine"]:
        _show_evidence(f"In quarantine: {each['reason']}", each)


def _show_evidence(title: str, each: dict[str, Any]) -> None:
    line(title, style="bold")
    line(f"  scan file: {each['file']}, page {each['page']}, row {each['row']}")
    known = (name for name in REQUEST if each[name] is not None)
    values = (f"{name.replace('_', ' ')} {shown(each[name])}" for name in known)
    line(f"  request: {', '.join(values)}")
    if "digest" in each:
        line(f"  digest: {each['digest']}")
    line(f"  {each['message']}", each["remedy"], style="" if each["proven"] else "red")
    raw = each["raw"] or each.get("text", "")
    line(raw, longest=len(raw))
