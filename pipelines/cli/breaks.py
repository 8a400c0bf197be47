"""Commands for breaks: list them, write them to a workbook, decide about them."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.finance import NUMBERS_AS_TEXT, show_covered
from pipelines.cli.terminal import confirm, line, open_home, show, show_and_reconcile, shown
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.text import counted
from pipelines.finance.doubt import Doubt, as_json, sentences

COLUMNS = (
    "break_id", "severity", "rule", "partner", "month", "currency", "difference", "rows",
    "cause", "age_days", "state", "owner",
)  # fmt: skip
MARKS = ("uncertain", "doubt")  # shown if a break has one
DECISION = ("break_id", "rule", "partner", "month", "currency", "difference", "state", "decision")
Rule = Annotated[str, Option(help="Rule that found it, such as not_billed.")]
Partner = Annotated[str, Option(help="Identifier or name of the partner.")]
Month = Annotated[str, Option(help="Month, such as 2026-09.")]
Severity = Annotated[str, Option(help="high, medium or low.")]
State = Annotated[str, Option(help="open, assigned or resolved.")]
Yes = Annotated[bool, Option("--yes", help="Do not ask before deciding.")]


@program.breaks.callback(invoke_without_command=True)
def list_breaks(  # noqa: PLR0913 - a command's parameters are its options
    context: typer.Context,
    *,
    rule: Rule = "",
    partner: Partner = "",
    month: Month = "",
    severity: Severity = "",
    state: State = "",
    xlsx: Annotated[
        Path | None, Option(help="New workbook for the breaks, to fill in decisions.")
    ] = None,
    json: program.Json = False,
) -> int | None:
    """List unresolved breaks, most severe first; assign, resolve or reopen them."""
    chosen = finance.breaks.BreakFilter(rule, partner, month, severity.lower(), state.lower())
    if context.invoked_subcommand is not None:
        if any(chosen) or xlsx or json:
            raise ConfigurationError(
                f"Options stand before `{context.invoked_subcommand}`. Nothing was changed.",
                "Write them after it: `partner-sync breaks resolve --rule RULE`.",
            )
        return None
    session = open_home()
    found = finance.breaks.read_breaks(session, chosen)
    covered = finance.breaks.read_covered(session, chosen)
    code = _list(chosen, (found, covered), finance.breaks.read_doubts(session), xlsx)
    show_covered(covered)
    return code


def _list(
    chosen: "finance.breaks.BreakFilter",
    read: tuple[Any, list[dict[str, Any]]],
    about: tuple[Sequence[Doubt], Sequence[Doubt]],
    xlsx: Path | None,
) -> int:
    """Print what is not known and notes, then breaks, or write them; return the exit code."""
    doubts, notes = about
    found, covered = read
    rounded = finance.breaks.write_file(found, xlsx) if xlsx else []
    rows = found.to_pylist()
    sums = finance.breaks.totals(rows)
    for text in sentences(doubts):
        line(text, style="yellow")
    for each in notes:
        line(each.message)
    marks = [name for name in MARKS if any(each[name] for each in rows)]
    in_json = {**as_json(doubts, notes), "breaks": rows, "totals": sums, "covered": covered}
    show([] if xlsx else _named(rows), (*COLUMNS, *marks), json_value=in_json)
    if xlsx:
        line(f"Wrote {counted(len(rows), 'break')} to {xlsx}. Fill in decision, owner and reason,")
        line(f"then run `partner-sync breaks decide {shlex.quote(str(xlsx))}`.")
        if rounded:
            line(f"{', '.join(rounded)}: {NUMBERS_AS_TEXT}", style="yellow")
    else:
        _show_rest(chosen, rows, sums, is_known=not doubts)
    return ExitCode.NEEDS_ATTENTION if doubts else ExitCode.DONE


def _show_rest(
    chosen: "finance.breaks.BreakFilter",
    rows: list[dict[str, Any]],
    sums: list[dict[str, Any]],
    *,
    is_known: bool,
) -> None:
    """Print what follows the table of breaks."""
    if not rows:
        none = "There are no unresolved breaks" + ("." if is_known else " in what is known.")
        line(f"No breaks match {chosen}." if any(chosen) else none)
    if any(each["uncertain"] for each in rows):
        line("Totals do not include uncertain breaks.", style="yellow")
    _show_totals(sums)


def _show_totals(sums: list[dict[str, Any]]) -> None:
    """Print the sum of each currency, with what is in no known partner's difference."""
    for each in sums:
        currency, part = each["currency"] or "No currency", each["unknown_partners"]
        text = f"{currency}: {shown(each['difference'])} in {counted(each['breaks'], 'break')}"
        if part["breaks"]:
            text += f", of which {shown(part['difference'])} of unknown partners"
        line(text)
    if any(each["unknown_partners"]["breaks"] for each in sums):
        line("No known partner's difference in the report includes breaks of unknown partners.")


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each | {"partner": each["partner_name"] or each["partner"]} for each in rows]


def _record(session: "app.session.AppSession", rows: list[dict[str, Any]], *, yes: bool) -> int:
    """Show what is about to be decided and ask; then record it, and show it in the books."""
    owner = ["new_owner"] if any(each["new_owner"] for each in rows) else []
    show(_named(rows), (*DECISION, *owner, "new_reason"))
    confirm(f"Record {counted(len(rows), 'decision')}?", yes=yes)
    return show_and_reconcile(session, finance.breaks.record_decisions(session, rows))


def _add_command(kind: str, text: str) -> None:
    """Add a command that decides about one break, or about those that a filter finds."""

    @program.breaks.command(kind, help=text)
    def decide(  # noqa: PLR0913 - as above
        break_id: Annotated[str, Argument(help="One break. Default: use the filters.")] = "",
        *,
        rule: Rule = "",
        partner: Partner = "",
        month: Month = "",
        severity: Severity = "",
        state: State = "",
        owner: Annotated[str, Option(help="Person to assign it to; only for assign.")] = "",
        reason: program.Reason,
        yes: Yes = False,
    ) -> int:
        about = (severity.lower(), state.lower(), break_id)
        chosen = finance.breaks.BreakFilter(rule, partner, month, *about)
        verdict, session = finance.breaks.BreakDecision(kind, reason, owner), open_home()
        rows = finance.breaks.choose_breaks(session, chosen, verdict)
        return _record(session, rows, yes=yes)


_add_command("assign", "Assign breaks to a person.")
_add_command("resolve", "Resolve breaks. A break opens again if its difference changes.")
_add_command("reopen", "Reopen breaks that a person resolved.")


@program.breaks.command("decide")
def decide_from_file(
    file: Annotated[Path, Argument(help="Workbook of --xlsx, or CSV with its columns.")],
    *,
    yes: Yes = False,
) -> int:
    """Record the decisions of a workbook or CSV file: all, or none if a row is wrong."""
    session = open_home()
    rows = finance.breaks.read_decisions(session, file)
    return _record(session, rows, yes=yes)
