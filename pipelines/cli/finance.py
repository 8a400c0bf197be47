"""Commands for people who work with the rows: mapping, queries, closes, exports, report."""

import os
import sys
import webbrowser
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.outcomes import run_reconcile, show_and_reconcile
from pipelines.cli.terminal import (
    line,
    open_home,
    show,
    show_error,
    shown,
)
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.person import name_of
from pipelines.core.text import counted
from pipelines.finance.doubt import NOT_MAPPED, as_json

Month = Annotated[datetime, Argument(formats=["%Y-%m"], help="Month, such as 2026-09.")]
Note = Annotated[str, Option("--note", help="Note to keep with the copy.")]
AcceptOpen = Annotated[
    str, Option(help="Why severe breaks stay open that have no owner with a reason.")
]
Connections = Annotated[
    list[str] | None,
    Option("--connection", help="Close it for this connection; repeat it. Default: for all."),
]
CLOSES = (
    "month", "number", "connections", "state", "changed_records", "net_difference", "approval",
    "preparer", "reviewer", "closed_at", "approved_at", "note", "reopened_by", "reopened_reason",
)  # fmt: skip
EXPORTS = ("table", "rows", "numbers_as_text", "exported_to")
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
    for row in rows:
        amounts = [f"{shown(row[name])} {label}" for name, label in COVERED if row[name]]
        text = " and ".join(amounts) or "what cancels within tolerance or rounding"
        currency = row["currency"] or "no currency"
        months = f"{counted(row['partner_months'], 'month')} of partners"
        line(f"No breaks: {currency} {text}, in {months}.")


@program.mapping.command()
def propose(*, _json: program.Json = False) -> int:
    """Propose a field for each role in reconciliation, and show the evidence."""
    rows = finance.proposals.propose(open_home())
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    show(rows, columns)
    line("Run `partner-sync mapping accept` to use these fields.")
    has_problem = any(row["problem"] for row in rows)
    return ExitCode.NEEDS_ATTENTION if has_problem else ExitCode.DONE


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
        # A wrong query ends no session: a person goes on with the next one.
        for text in _queries():
            try:
                show(finance.sql.answer(db, text), if_empty="No rows.")
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
        prompt = ""
        if is_asked:
            prompt = "...> " if lines else "sql> "
        try:
            text = input(prompt)
        except EOFError:
            break
        lines.append(text)
        if text.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines.clear()
    if "".join(lines).strip():
        yield "\n".join(lines)


@program.close.command()
def prepare(
    month: Month,
    *,
    check: Annotated[
        bool, Option("--check", help="Show what keeps it open; write nothing.")
    ] = False,
    remark: Note = "",
    accept_open: AcceptOpen = "",
    connection: Connections = None,
    _json: program.Json = False,
) -> int:
    """Freeze the copy of a month, which another user of the machine then approves."""
    session = open_home()
    prepared = finance.close_refusals.prepare_month(session, month.date(), connection, accept_open)
    show(prepared["lists"], json_value=prepared, if_empty="No list has a record of the month.")
    basis = finance.close_refusals.basis_of(prepared["lists"])
    if basis:
        line(basis, PASSES)
    for refusal in prepared["refusals"]:
        line(refusal["message"], refusal["remedy"], style="yellow")
    if prepared["refusals"]:
        return ExitCode.NEEDS_ATTENTION
    if check:
        line(f"{prepared['month']} can be closed: `partner-sync close prepare` freezes its copy.")
        return ExitCode.DONE
    said = finance.signing.Signing(remark, accept_open, tuple(connection or ()))
    line(finance.close.prepare_close(session, month.date(), said))
    line(f"Next, another user runs `partner-sync close approve` for {prepared['month']}.")
    return ExitCode.DONE


@program.close.command()
def approve(
    month: Month,
    *,
    number: Annotated[
        int | None, Option(min=1, help="Number of the copy, if there are several.")
    ] = None,
    manifest: Annotated[str, Option(help="SHA-256 of its manifest, as you read it.")] = "",
    database: Annotated[
        str, Option(help="Variable with the URL of the metadata database and your user there.")
    ] = "",
    _json: program.Json = False,
) -> int:
    """Verify and approve a prepared copy, as another user of the machine than who prepared it."""
    approved = finance.approve.approve_copy(month.date(), number, manifest, None, database)
    show(approved["sums"], json_value=approved, if_empty="The month has no totals.")
    line(f"Prepared by {approved['preparer']}, from data until {approved['as_of']}.")
    line(f"Mapping: mapping.toml of the copy, SHA-256 {approved['mapping_sha256']}.")
    if approved["accept_open"]:
        line(f"Open breaks are accepted: {approved['accept_open']}")
    copy = f"{approved['month']}, copy {approved['number']:03}"
    line(f"{approved['approver']} approves {copy}: manifest {approved['manifest_sha256']}.")
    line("The next command of the home closes the month, such as `partner-sync close list`.")
    return ExitCode.DONE


@program.close.command("month")
def close_month(  # noqa: PLR0913 - a command's parameters are its options
    month: Month,
    *,
    preparer: Annotated[str, Option(help="Who prepared the close.")] = "",
    reviewer: Annotated[str, Option(help="Who reviewed it; another person.")] = "",
    remark: Note = "",
    accept_open: AcceptOpen = "",
    connection: Connections = None,
) -> int:
    """Sign off a month and copy it. Later changes are posted as corrections."""
    session = open_home()
    said = finance.signing.Signing(remark, accept_open, tuple(connection or ()))
    if session.settings.approval == "one":
        text = finance.close.close_alone(session, month.date(), said)
    else:
        text = finance.close.close_month(session, month.date(), preparer, reviewer, said)
    return show_and_reconcile(session, text)


@program.close.command()
def reopen(month: Month, *, reason: program.Reason) -> int:
    """Reopen a closed month. Its copy stays."""
    session = open_home()
    text = finance.close.reopen_month(session, month.date(), name_of(os.getuid()), reason)
    return show_and_reconcile(session, text)


@program.close.command("list")
def list_closes(*, _json: program.Json = False) -> int:
    """List closed months, and whether their records have changed since the sign-off."""
    session = open_home()
    approved = finance.approvals.take_over(session)
    for sentence in approved:
        line(sentence)
    if approved:
        finance.books.make_books(session)
    rows = finance.close.list_closes(session)
    show(rows, CLOSES, if_empty="No month is closed.")
    for row in rows:
        line(f"Manifest of {row['month']}/{row['number']:03}: SHA-256 {row['manifest_sha256']}")
    problems = {row["problem"] for row in rows if row["problem"]}
    for problem in sorted(problems):
        line(problem, style="yellow")
    return ExitCode.NEEDS_ATTENTION if problems else ExitCode.DONE


@program.command(rich_help_panel=program.FINANCE)
def export(
    target: Annotated[
        str,
        Argument(help="csv, parquet, xlsx, dbt, books, or a variable that holds a database URL."),
    ],
    *,
    table: Annotated[
        list[str] | None,
        Option("--table", "-t", help="schema.table, or schema; repeatable. Default: current."),
    ] = None,
    folder: Annotated[
        Path | None, Option(help="New folder for the files. Default: in the home.")
    ] = None,
    records: Annotated[
        bool, Option("--records", help="With books: add every usage record and line of a bill.")
    ] = False,
    _json: program.Json = False,
) -> None:
    """Export tables of the published version to files or a database, with exact amounts."""
    session = open_home()
    rows = app.export.export_tables(session, target, table or (), folder, records=records)
    show(rows, EXPORTS)
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
    figures = finance.report.read_figures_of_books(session, with_details=True)
    file = finance.report.write_report(session, figures)
    verdicts = finance.report.judge(figures)
    totals = verdicts.totals()
    covered = figures.tables["covered"]
    document = {
        "version": verdicts.version,
        "file": str(file),
        "currencies": totals,
        "problem": verdicts.problem or None,
        **as_json(verdicts.doubts, figures.notes),
        "covered": covered,
        "own_books": figures.tables["own_sources"],
        "own_totals": figures.tables["own_totals"],
        "verdict": verdicts.as_json(),
    }
    for text in verdicts.why_not_proven():
        line(text, style="yellow")
    if verdicts.problem:
        line(f"Usage is not compared with billing. {verdicts.problem}", style="yellow")
    for note in figures.notes:
        line(note.message)
    show(totals, json_value=document)
    show_covered(covered)
    line(f"Report of version {figures.version}: {file}")
    if open_page:
        webbrowser.open(file.as_uri())
    # Where nobody has mapped anything yet, nobody expects a comparison.
    is_mapped = not verdicts.problem.startswith(NOT_MAPPED)
    if verdicts.doubts or (verdicts.problem and is_mapped):
        return ExitCode.NEEDS_ATTENTION
    return ExitCode.DONE
