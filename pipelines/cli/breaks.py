"""Commands for breaks: list them, write them to a workbook, decide about them."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.finance import NUMBERS_AS_TEXT, show_covered
from pipelines.cli.outcomes import show_and_reconcile
from pipelines.cli.terminal import confirm, line, open_home, show, shown
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.text import counted, printable
from pipelines.finance.doubt import as_json, sentences

COLUMNS = (
    "break_id", "severity", "rule", "partner", "month", "currency", "difference", "rows",
    "cause", "age_days", "first_seen", "state", "owner",
)  # fmt: skip
# Shown only if a break has one: what own books have, and why it is uncertain.
MARKS = ("own_amount", "uncertain", "doubt")
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
    chosen = finance.breaks.BreakFilter(
        rule=rule,
        partner=partner,
        month=month,
        severity=severity.lower(),
        state=state.lower(),
    )
    command = context.invoked_subcommand
    if command is not None:
        if any(chosen) or xlsx or json:
            raise ConfigurationError(
                f"Options stand before `{command}`. Nothing was changed.",
                "Write them after it: `partner-sync breaks resolve --rule RULE`.",
            )
        return None
    listed = finance.breaks.list_breaks(open_home(), chosen)
    rows = listed.breaks.to_pylist()
    sums = finance.breaks.totals(rows)
    if xlsx:
        _write_workbook(listed, rows, sums, xlsx)
    else:
        _show_breaks(listed, rows, sums, as_table=True)
        if not rows:
            line(_none_found(chosen, is_known=not listed.doubts))
        _show_totals(rows, sums)
    _show_small_breaks(listed.small_breaks)
    _show_materiality(listed.materiality)
    show_covered(listed.covered)
    return ExitCode.NEEDS_ATTENTION if listed.doubts else ExitCode.DONE


def _write_workbook(
    listed: "finance.breaks.BreakList",
    rows: list[dict[str, Any]],
    sums: list[dict[str, Any]],
    file: Path,
) -> None:
    """Write breaks to a new workbook, and say what to do with it."""
    # Before anything is printed: the workbook may exist already.
    numbers_as_text = finance.decisions_file.write_file(listed.breaks, file)
    _show_breaks(listed, rows, sums, as_table=False)
    line(f"Wrote {counted(len(rows), 'break')} to {file}. Fill in decision, owner and reason,")
    line(f"then run `partner-sync breaks decide {shlex.quote(str(file))}`.")
    if numbers_as_text:
        line(f"{', '.join(numbers_as_text)}: {NUMBERS_AS_TEXT}", style="yellow")


def _show_breaks(
    listed: "finance.breaks.BreakList",
    rows: list[dict[str, Any]],
    sums: list[dict[str, Any]],
    *,
    as_table: bool,
) -> None:
    """Print what is not known and notes, then breaks as a table; all of it as JSON."""
    for text in sentences(listed.doubts):
        line(text, style="yellow")
    for note in listed.notes:
        line(note.message)
    marks = [name for name in MARKS if any(row[name] is not None for row in rows)]
    document = {
        **as_json(listed.doubts, listed.notes),
        "breaks": rows,
        "totals": sums,
        "own_totals": finance.own_books.sums_of_breaks(rows),
        "small_breaks": listed.small_breaks,
        "materiality": listed.materiality,
        "covered": listed.covered,
    }
    show(_named(rows) if as_table else [], (*COLUMNS, *marks), json_value=document)


def _none_found(chosen: "finance.breaks.BreakFilter", *, is_known: bool) -> str:
    if any(chosen):
        return f"No breaks match {chosen}."
    if is_known:
        return "There are no unresolved breaks."
    return "There are no unresolved breaks in what is known."


def _show_totals(rows: list[dict[str, Any]], sums: list[dict[str, Any]]) -> None:
    """Print the sum of each currency, with what is in no known partner's difference."""
    if any(row["uncertain"] for row in rows):
        line("Totals do not include uncertain breaks.", style="yellow")
    has_unknown_partners = False
    for total in sums:
        currency = total["currency"] or "No currency"
        text = f"{currency}: {shown(total['difference'])} in {counted(total['breaks'], 'break')}"
        unknown = total["unknown_partners"]
        if unknown["breaks"]:
            has_unknown_partners = True
            text += f", of which {shown(unknown['difference'])} of unknown partners"
        line(text)
    for total in finance.own_books.sums_of_breaks(rows):
        line(
            f"{total['rule']}, {total['currency'] or 'no currency'}: the service has "
            f"{shown(total['difference'])} more than own books, in "
            f"{counted(total['breaks'], 'break')}"
        )
    if has_unknown_partners:
        line("No known partner's difference in the report includes breaks of unknown partners.")


def _show_small_breaks(sums: list[dict[str, Any]]) -> None:
    """Print which partners have breaks that are material together, although none is."""
    for small in sums:
        partner = small["partner_name"] or small["partner"] or "no partner"
        line(
            f"high: {printable(partner)}, {small['currency']}: "
            f"{counted(small['breaks'], 'smaller break')} add up to {shown(small['difference'])}.",
            style="yellow",
        )


def _show_materiality(amounts: list[dict[str, Any]]) -> None:
    """Print from which amount on a break is high, by currency."""
    texts = [
        f"{each['currency']} {finance.materiality.amount_text(each['amount'])}" for each in amounts
    ]
    if not texts:
        return
    line(f"High from {', '.join(texts)}; medium from 10 % of it.")
    proposed = [each["currency"] for each in amounts if each["source"] == "proposal"]
    if proposed:
        line(
            f"Proposed from what was billed, and not in mapping.toml: {', '.join(proposed)}.",
            "Run `partner-sync mapping accept --replace` to keep these amounts.",
        )


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return breaks with names of partners in place of identifiers, and days of times."""
    named = []
    for row in rows:
        partner = row["partner_name"] or row["partner"]
        named.append(row | {"partner": partner, "first_seen": row["first_seen"].date()})
    return named


def _record(session: "app.session.AppSession", rows: list[dict[str, Any]], *, yes: bool) -> int:
    """Show what is about to be decided and ask; then record it, and show it in the books."""
    columns = [*DECISION, "new_reason"]
    if any(row["new_owner"] for row in rows):
        columns.insert(-1, "new_owner")
    show(_named(rows), columns)
    confirm(f"Record {counted(len(rows), 'decision')}?", yes=yes)
    return show_and_reconcile(session, finance.break_decisions.record_decisions(session, rows))


def _add_command(kind: str, text: str) -> None:
    """Add a command that decides about one break, or about those that a filter finds."""

    # Typer reads options from a signature, so three commands share this one.
    @program.breaks.command(kind, help=text)
    def decide(  # noqa: PLR0913 - as above
        break_id: Annotated[str, Argument(help="One break. Default: use the filters.")] = "",
        *,
        rule: Rule = "",
        partner: Partner = "",
        month: Month = "",
        severity: Severity = "",
        state: State = "",
        owner: Annotated[
            str, Option(callback=program.kept, help="Person to assign it to; only for assign.")
        ] = "",
        reason: program.Reason,
        yes: Yes = False,
    ) -> int:
        chosen = finance.breaks.BreakFilter(
            rule=rule,
            partner=partner,
            month=month,
            severity=severity.lower(),
            state=state.lower(),
            break_id=break_id,
        )
        decision = finance.break_decisions.BreakDecision(kind, reason, owner)
        session = open_home()
        rows = finance.break_decisions.choose_breaks(session, chosen, decision)
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
    rows = finance.decisions_file.read_decisions(session, file)
    return _record(session, rows, yes=yes)
