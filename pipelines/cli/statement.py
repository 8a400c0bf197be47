"""The command that writes statements for partners, lists them, and notes that one was sent."""

from datetime import date, datetime
from typing import Annotated, Any

from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.terminal import line, open_home, show
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.text import counted, printable

WRITTEN = ("month", "connection", "partner", "name", "number", "source", "state")
LISTED = (*WRITTEN, "written_at", "written_by", "sent")
FORMAT = "%Y-%m"
DAY = "%Y-%m-%d"
NOT_NOTED = "not noted"
EXAMPLE = "`partner-sync statement acme 2026-09 --sent 1 --to billing@acme.example`"


@program.command(rich_help_panel=program.FINANCE)
def statement(  # noqa: PLR0913 - a command's parameters are its options
    partner: Annotated[str, Argument(help="Identifier or name of a partner.")] = "",
    month: Annotated[str, Argument(help="Month, such as 2026-09.")] = "",
    *,
    all_partners: Annotated[
        bool, Option("--all", help="Write one for each partner of the month.")
    ] = False,
    list_written: Annotated[
        bool, Option("--list", help="List what was written; writes nothing.")
    ] = False,
    connection: Annotated[
        str, Option("--connection", "-c", help="Of this connection only. Default: of all.")
    ] = "",
    pdf: Annotated[
        bool, Option("--pdf/--no-pdf", help="Also as PDF, if a browser is here.")
    ] = True,
    sent: Annotated[
        int | None,
        Option("--sent", min=1, help="Note that this number was sent; writes no statement."),
    ] = None,
    sent_to: Annotated[
        str,
        Option(
            "--to",
            callback=program.kept,
            help="Recipient, such as an address. With --sent.",
        ),
    ] = "",
    sent_on: Annotated[
        str, Option("--on", help="Day on which it was sent. Default: today in UTC.")
    ] = "",
    _json: program.Json = False,
) -> int:
    """Write what a partner used and was billed in a month, and what is asked for."""
    if not month and (all_partners or _is_month(partner)):
        month = partner
        partner = ""
    session = open_home()
    if sent or sent_to or sent_on:
        if all_partners or list_written or not (partner and month and sent and sent_to):
            raise ConfigurationError(
                "A note needs a partner, a month, --sent and --to, without --all and --list. "
                "Nothing was noted.",
                f"Example: {EXAMPLE}.",
            )
        asked = (_first_day(month), partner, connection)
        finance.statement_sent.note_sent(session, asked, sent, sent_to, _day(sent_on))
        return _list(session, partner, month, connection)
    if list_written:
        return _list(session, partner, month, connection)
    if all_partners == bool(partner) or not month:
        raise ConfigurationError(
            "Name a partner and a month, or a month with --all. No statement was written.",
            "Example: `partner-sync statement acme 2026-09`, or `partner-sync statement --all "
            "2026-09`.",
        )
    first = _first_day(month)
    rows = finance.statement.write_statements(session, first, partner, connection, with_pdf=pdf)
    return _show_written(session, rows)


def _show_written(session: "app.session.AppSession", rows: list[dict[str, Any]]) -> int:
    """Print which statements were written, and what is wrong; return the exit code."""
    _add_states(rows)
    show(rows, WRITTEN)
    written = [row for row in rows if row["number"]]
    new = sum(row["is_new"] for row in written)
    line(f"{counted(new, 'statement')} written, {len(written) - new:,} as before.")
    _say_left_out(written)
    for reason in dict.fromkeys(reason for row in written for reason in row["provisional"]):
        line(f"Provisional: {reason}", style="yellow")
    line(f"All statements: {session.home.statements / 'index.html'}")
    has_problems = _say_problems(rows)
    if has_problems or any(row["provisional"] for row in rows):
        return ExitCode.NEEDS_ATTENTION
    return ExitCode.DONE


def _list(session: "app.session.AppSession", partner: str, month: str, connection: str) -> int:
    """Print which statements were written; return the exit code."""
    first = _first_day(month) if month else None
    rows = finance.statement.list_statements(session, first, partner, connection)
    _add_states(rows)
    shown = [{**row, "sent": _sent(row)} for row in rows]
    show(shown, LISTED, json_value=rows, if_empty="No such statement was written.")
    for row in rows:
        for file in row["files"] or ():
            line(f"{file}: SHA-256 {row['sha256'][file.rpartition('/')[2]]}")
    return ExitCode.NEEDS_ATTENTION if _say_problems(rows) else ExitCode.DONE


def _sent(row: dict[str, Any]) -> str | None:
    """Return when a statement was sent, where to, and by whom noted; None for a problem only."""
    if not row["number"]:
        return None
    notes = [f"{note['day']} to {note['to']}, noted by {note['noted_by']}" for note in row["sent"]]
    return "; ".join(notes) or NOT_NOTED


def _add_states(rows: list[dict[str, Any]]) -> None:
    """Say of each statement whether it is final; of a row with a problem only, nothing."""
    for row in rows:
        row["state"] = "provisional" if row["provisional"] else "final"
        if not row["number"]:
            row["state"] = None


def _say_problems(rows: list[dict[str, Any]]) -> bool:
    """Print what is wrong with files of statements; return whether anything is."""
    problems = [row["problem"] for row in rows if row["problem"]]
    for problem in problems:
        line(problem, style="yellow")
    return bool(problems)


def _say_left_out(rows: list[dict[str, Any]]) -> None:
    """Print why statements have no PDF, once for each reason."""
    for reason in dict.fromkeys(row["left_out"] for row in rows if row["left_out"]):
        number = sum(row["left_out"] == reason for row in rows)
        line(f"Without a PDF, {counted(number, 'statement')}: {printable(reason)}.")


def _is_month(text: str) -> bool:
    try:
        _first_day(text)
    except ConfigurationError:
        return False
    return True


def _day(text: str) -> date | None:
    """Return a day, None for no text. Raises ConfigurationError."""
    if not text:
        return None
    try:
        return datetime.strptime(text, DAY).date()  # noqa: DTZ007 - it has no time
    except ValueError:
        raise ConfigurationError(
            f"`{printable(text, 20)}` is no day. Nothing was noted.", "Write it as 2026-10-05."
        ) from None


def _first_day(month: str) -> date:
    """Return the first day of a month. Raises ConfigurationError."""
    try:
        return datetime.strptime(month, FORMAT).date()  # noqa: DTZ007 - it has no time
    except ValueError:
        raise ConfigurationError(
            f"`{printable(month, 20)}` is no month. No statement was written.",
            "Write the month as 2026-09.",
        ) from None
