"""Here: commands for people who work with figures: mapping, reconcile, queries, exports, report.

Not here: closes (close), breaks (breaks), own books (own), statements (statement).
"""

import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.outcomes import run_reconcile, show_and_reconcile
from pipelines.cli.terminal import line, open_home, show, show_error, shown
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.text import counted
from pipelines.finance.doubt import NOT_MAPPED, as_json

EXPORTS = ("table", "rows", "numbers_as_text", "exported_to")
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
    warehouse = app.pull.pulled_files() or open_home().warehouse
    with finance.sql.open_for_queries(warehouse) as db:
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
