"""Here: commands for closes of months: prepare, approve, close, reopen, list."""

import os
from datetime import datetime
from typing import Annotated

from typer import Argument, Option

from pipelines import finance
from pipelines.cli import program
from pipelines.cli.outcomes import show_and_reconcile
from pipelines.cli.terminal import line, open_home, show
from pipelines.core.errors import ExitCode
from pipelines.core.person import name_of

Month = Annotated[datetime, Argument(formats=["%Y-%m"], help="Month, such as 2026-09.")]
Note = Annotated[str, Option("--note", callback=program.kept, help="Note to keep with the copy.")]
AcceptOpen = Annotated[
    str,
    Option(
        callback=program.kept, help="Why severe breaks stay open that have no owner with a reason."
    ),
]
Connections = Annotated[
    list[str] | None,
    Option("--connection", help="Close it for this connection; repeat it. Default: for all."),
]
CLOSES = (
    "month", "number", "connections", "state", "changed_records", "net_difference", "approval",
    "preparer", "reviewer", "closed_at", "approved_at", "note", "reopened_by", "reopened_reason",
)  # fmt: skip
PASSES = (
    "For two that must agree, set passes = 2 for the list in settings.toml, then run "
    "`partner-sync sync`."
)


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
    line(f"Prepared by {approved['preparer']}, from data as of {approved['as_of']}.")
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
    preparer: Annotated[str, Option(callback=program.kept, help="Who prepared the close.")] = "",
    reviewer: Annotated[
        str, Option(callback=program.kept, help="Who reviewed it; another person.")
    ] = "",
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
