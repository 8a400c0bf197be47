"""Commands for people who work with the rows: mapping, closes, exports, report, traces."""

import sys
import webbrowser
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.terminal import (
    line,
    open_home,
    run_reconcile,
    show,
    show_and_reconcile,
    show_error,
    show_table,
    shown,
)
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.person import user_name
from pipelines.core.text import counted
from pipelines.finance.doubt import NOT_MAPPED, as_json

Month = Annotated[datetime, Argument(formats=["%Y-%m"], help="Month, such as 2026-09.")]
CLOSES = (
    "month", "number", "state", "changed_records", "net_difference", "preparer", "reviewer",
    "closed_at", "note",
)  # fmt: skip
EXPORTS = ("table", "rows", "numbers_as_text", "exported_to")
ROWS = ("part", "id", "amount", "from_raw", "file", "page", "row")
REQUEST = ("offset", "limit", "sent_at", "received_at", "status", "request_id")
SUMS = ("part", "connection", "partner", "currency", "published", "from_raw", "same")
PASSES = (
    "For two that must agree, set passes = 2 for the list in settings.toml, then run "
    "`partner-sync sync`."
)
COVERED = (("tolerated", "within tolerance"), ("rounding", "of rounding"))
NUMBERS_AS_TEXT = (
    "Excel keeps 15 digits of a number. Longer ones are text in the columns named above, so that "
    "none is rounded. SUM ignores text."
)


def show_covered(rows: list[dict[str, Any]]) -> None:
    """Print what tolerance and rounding cover, by currency."""
    for each in rows:
        amounts = (f"{shown(each[name])} {what}" for name, what in COVERED if each[name])
        months = counted(each["partner_months"], "partner-month")
        text = " and ".join(amounts) or "what cancels within tolerance or rounding"
        line(f"No breaks: {each['currency'] or 'no currency'} {text}, in {months}.")


@program.mapping.command()
def propose(*, _json: program.Json = False) -> int:
    """Propose a field for each role in reconciliation, and show the evidence."""
    rows = finance.proposals.propose(open_home())
    show(rows, [name for name in rows[0] if any(row[name] for row in rows)])
    line("Run `partner-sync mapping accept` to use these fields.")
    return ExitCode.NEEDS_ATTENTION if any(row["problem"] for row in rows) else ExitCode.DONE


@program.mapping.command()
def accept(
    *,
    replace: Annotated[
        bool, Option("--replace", help="Replace a mapping.toml that differs.")
    ] = False,
) -> int:
    """Write the proposed fields to mapping.toml, then reconcile with them."""
    session = open_home()
    return show_and_reconcile(session, finance.proposals.accept(session, replace=replace))


@program.command(rich_help_panel=program.FINANCE)
def reconcile(*, _json: program.Json = False) -> int:
    """Compare usage with billing in the published version, and publish the books."""
    return run_reconcile(open_home(), again=True)


@program.command(rich_help_panel=program.FINANCE)
def sql(
    query: Annotated[
        str, Argument(help="Query. Default: read queries that end in `;` from standard input.")
    ] = "",
    *,
    _json: program.Json = False,
) -> int:
    """Query the published books and their version of the warehouse; changes nothing."""
    with finance.sql.open_for_queries(open_home()) as db:
        if query:
            show(finance.sql.answer(db, query), if_empty="No rows.")
            return ExitCode.DONE
        code = ExitCode.DONE
        for each in _queries():
            try:
                show(finance.sql.answer(db, each), if_empty="No rows.")
            except ConfigurationError as error:
                show_error(error)
                code = error.exit_code
        return code


def _queries() -> Iterator[str]:
    """Yield the queries of standard input; ask for them on a terminal."""
    is_asked = sys.stdin.isatty()
    if is_asked:
        line("End each query with `;`. Tables: current, history, finance, reconciliation, meta.")
    lines = list[str]()
    while True:
        try:
            text = input(("sql> " if not lines else "...> ") if is_asked else "")
        except EOFError:
            break
        lines.append(text)
        if text.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines.clear()
    if "".join(lines).strip():
        yield "\n".join(lines)


@program.close.command()
def prepare(month: Month, *, _json: program.Json = False) -> int:
    """Show what keeps a month from being closed, and what its proofs rest on. Changes nothing."""
    found = finance.close_refusals.prepare_month(open_home(), month.date())
    show(found["lists"], json_value=found, if_empty="No list has a record of the month.")
    if basis := finance.close_refusals.basis_of(found["lists"]):
        line(basis, PASSES)
    for each in found["refusals"]:
        line(each["message"], each["remedy"], style="yellow")
    if found["refusals"]:
        return ExitCode.NEEDS_ATTENTION
    line(f"{found['month']} can be closed: `partner-sync close month` signs it off.")
    return ExitCode.DONE


@program.close.command("month")
def close_month(
    month: Month,
    *,
    preparer: Annotated[str, Option(help="Who prepared the close.")],
    reviewer: Annotated[str, Option(help="Who reviewed it; another person.")],
    remark: Annotated[str, Option("--note", help="Note to keep with the copy.")] = "",
) -> int:
    """Sign off a month and copy it. Later changes are posted as corrections."""
    session = open_home()
    text = finance.close.close_month(session, month.date(), preparer, reviewer, remark)
    return show_and_reconcile(session, text)


@program.close.command()
def reopen(month: Month, *, reason: program.Reason) -> int:
    """Reopen a closed month. Its copy stays."""
    session = open_home()
    text = finance.close.reopen_month(session, month.date(), user_name(), reason)
    return show_and_reconcile(session, text)


@program.close.command("list")
def list_closes(*, _json: program.Json = False) -> int:
    """List closed months, and whether their records have changed since the sign-off."""
    show(rows := finance.close.list_closes(open_home()), CLOSES, if_empty="No month is closed.")
    problems = {row["problem"] for row in rows if row["problem"]}
    for problem in sorted(problems):
        line(problem, style="yellow")
    return ExitCode.NEEDS_ATTENTION if problems else ExitCode.DONE


@program.command(rich_help_panel=program.FINANCE)
def export(
    target: Annotated[
        str, Argument(help="csv, parquet, xlsx, dbt, or a variable that holds a database URL.")
    ],
    *,
    table: Annotated[
        list[str] | None,
        Option("--table", "-t", help="schema.table, or schema; repeatable. Default: current."),
    ] = None,
    folder: Annotated[
        Path | None, Option(help="New folder for the files. Default: in the home.")
    ] = None,
    _json: program.Json = False,
) -> None:
    """Export tables of the published version to files or a database, with exact amounts."""
    show(rows := app.export.export_tables(open_home(), target, table or (), folder), EXPORTS)
    if any(row["numbers_as_text"] for row in rows):
        line(NUMBERS_AS_TEXT, style="yellow")


@program.command(rich_help_panel=program.FINANCE)
def report(
    *,
    open_page: Annotated[bool, Option("--open", help="Open it in the browser.")] = False,
    _json: program.Json = False,
) -> int:
    """Write the finance report of the published books as one HTML page."""
    session = open_home()
    figures = finance.report.read_published(session)
    file = finance.report.write_report(session, figures)
    verdicts = finance.report.judge(figures)
    rows = verdicts.totals()
    covered = figures.tables["covered"]
    found = {
        "version": verdicts.version,
        "file": str(file),
        "currencies": rows,
        "problem": verdicts.problem or None,
        **as_json(verdicts.doubts, figures.notes),
        "covered": covered,
        "verdict": verdicts.as_json(),
    }
    for text in verdicts.why_not_proven():
        line(text, style="yellow")
    if verdicts.problem:
        line(f"Usage is not compared with billing. {verdicts.problem}", style="yellow")
    for each in figures.notes:
        line(each.message)
    show(rows, json_value=found)
    show_covered(covered)
    line(f"Report of version {figures.version}: {file}")
    if open_page:
        webbrowser.open(file.as_uri())
    is_asked = not verdicts.problem.startswith(NOT_MAPPED)  # nobody has mapped anything yet
    is_known = not verdicts.doubts and not (verdicts.problem and is_asked)
    return ExitCode.DONE if is_known else ExitCode.NEEDS_ATTENTION


@program.trace.command()
def record(
    connection: program.Connection,
    stream: Annotated[str, Argument(help="Stream of the record.")],
    key: Annotated[str, Argument(help="Its key: `_key` of the row.")],
    *,
    _json: program.Json = False,
) -> int:
    """Show every row version of a record, its request, and the bytes that the service sent."""
    found = app.trace.trace(open_home(), connection, stream, key)
    _show_trace(found)
    is_proven = all(each["proven"] for each in (*found["versions"], *found["quarantine"]))
    return ExitCode.DONE if is_proven else ExitCode.NEEDS_ATTENTION


@program.trace.command("break")
def trace_break(
    break_id: Annotated[str, Argument(help="Identifier of the break.")],
    *,
    _json: program.Json = False,
) -> int:
    """Show the records of a break, and recalculate its amounts from what the service sent."""
    return _show_figure(finance.trace_figure.trace_break(open_home(), break_id))


@program.trace.command()
def month(
    partner: Annotated[str, Argument(help="Identifier or name of the partner.")],
    month: Annotated[str, Argument(help="Month, such as 2026-09.")],
    *,
    currency: Annotated[str, Option(help="Currency, such as EUR. Default: all.")] = "",
    _json: program.Json = False,
) -> int:
    """Show the records of a partner's month, and recalculate it from what the service sent."""
    return _show_figure(finance.trace_figure.trace_month(open_home(), partner, month, currency))


def _show_figure(found: dict[str, Any]) -> int:
    """Print rows and sums; return the exit code."""
    show((), json_value=found)
    for rows, columns in ((found["rows"], ROWS), (found["sums"], SUMS)):
        has_problem = any(each["problem"] for each in rows)
        show_table(rows, (*columns, "problem") if has_problem else columns)
    proven = f"Version {found['version']} has the same sums as the records of the service."
    problem = "A sum differs from the records of the service, or cannot be compared."
    line(proven) if found["same"] else line(problem, found["problem"], style="red")
    return ExitCode.DONE if found["same"] else ExitCode.NEEDS_ATTENTION


def _show_trace(found: dict[str, Any]) -> None:
    show((), json_value=found)
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
