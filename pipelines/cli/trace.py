"""Commands that trace a record, a break or a month to what the service sent."""

from typing import Annotated, Any

from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.terminal import line, open_home, show, show_table, shown
from pipelines.core.errors import ExitCode

Close = Annotated[
    str, Option("--close", help="Copy of a closed month, such as 2026-09. Default: the books.")
]
MAPPED = ("number", "quantity", "price", "date")  # shown where a row has them
ROWS = ("part", "partner", "id", *MAPPED, "amount", "from_raw", "file", "page", "row")
SUMS = ("part", "connection", "partner", "currency", "published", "from_raw", "same")
REQUEST = ("offset", "limit", "sent_at", "received_at", "status", "request_id")


@program.trace.command()
def record(
    connection: program.Connection,
    stream: Annotated[str, Argument(help="Stream of the record.")],
    key: Annotated[str, Argument(help="Its key: `_key` of the row.")],
    *,
    _json: program.Json = False,
) -> int:
    """Show every row version of a record, its request, and the bytes that the service sent."""
    traced = app.trace.trace(open_home(), connection, stream, key)
    show((), json_value=traced)
    _show_record(traced)
    is_proven = all(row["proven"] for row in (*traced["versions"], *traced["quarantine"]))
    return ExitCode.DONE if is_proven else ExitCode.NEEDS_ATTENTION


@program.trace.command("break")
def trace_break(
    break_id: Annotated[str, Argument(help="Identifier of the break.")],
    *,
    close: Close = "",
    _json: program.Json = False,
) -> int:
    """Show the records of a break, and recalculate its amounts from what the service sent."""
    return _show_figure(finance.trace_figure.trace_break(open_home(), break_id, close))


@program.trace.command()
def month(
    partner: Annotated[str, Argument(help="Identifier or name of the partner.")],
    month: Annotated[str, Argument(help="Month, such as 2026-09.")],
    *,
    currency: Annotated[str, Option(help="Currency, such as EUR. Default: all.")] = "",
    close: Close = "",
    _json: program.Json = False,
) -> int:
    """Show the records of a partner's month, and recalculate it from what the service sent."""
    session = open_home()
    found = finance.trace_figure.trace_month(session, partner, month, currency, close)
    return _show_figure(found)


def _show_figure(traced: dict[str, Any]) -> int:
    """Print rows and sums; return the exit code."""
    show((), json_value=traced)
    rows = traced["rows"]
    is_empty = {name for name in MAPPED if all(row.get(name) is None for row in rows)}
    _show_with_problems(rows, tuple(name for name in ROWS if name not in is_empty))
    _show_with_problems(traced["sums"], SUMS)
    if not traced["same"]:
        text = "A sum differs from the records of the service, or cannot be compared."
        line(text, traced["problem"], style="red")
        return ExitCode.NEEDS_ATTENTION
    line(f"{traced['source']} has the same sums as the records of the service.")
    return ExitCode.DONE


def _show_with_problems(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Print rows as a table, with their problems if any row has one."""
    if any(row["problem"] for row in rows):
        columns = (*columns, "problem")
    show_table(rows, columns)


def _show_record(traced: dict[str, Any]) -> None:
    """Print each version of a record, and its records in quarantine."""
    place = f"{traced['connection']}/{traced['stream']}"
    line(f"Record {traced['key']} of {place} in version {traced['version']}:")
    for version in traced["versions"]:
        ended = "now"
        if version["valid_to"]:
            ended = f"{shown(version['valid_to'])} ({version['end_reason']})"
        _show_evidence(f"From {shown(version['valid_from'])} until {ended}", version)
    for record in traced["quarantine"]:
        _show_evidence(f"In quarantine: {record['reason']}", record)


def _show_evidence(title: str, row: dict[str, Any]) -> None:
    """Print where a row comes from, whether that is proven, and what the service sent."""
    line(title, style="bold")
    line(f"  scan file: {row['file']}, page {row['page']}, row {row['row']}")
    known = [name for name in REQUEST if row[name] is not None]
    values = [f"{name.replace('_', ' ')} {shown(row[name])}" for name in known]
    line(f"  request: {', '.join(values)}")
    if "digest" in row:
        line(f"  digest: {row['digest']}")
    line(f"  {row['message']}", row["remedy"], style="" if row["proven"] else "red")
    # Without the scan file, only quarantine still has the text of a record.
    raw = row["raw"] or row.get("text", "")
    line(raw, longest=len(raw))
