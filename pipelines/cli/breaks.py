"""The verbs `breaks`, `breaks list`, `show`, `assign`, `resolve` and `reopen`."""

import getpass
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.errors import ConfigurationError
from pipelines.run import Break, Chosen
from pipelines.settings import currencies
from pipelines.state.breaks import Act, Kind, Reason, State

Rule = Annotated[str | None, typer.Option(help="Of this rule only.")]
Partner = Annotated[str | None, typer.Option(help="Of this partner only: id or name.")]
Month = Annotated[datetime | None, typer.Option(formats=["%Y-%m"], help="Of this month only.")]
Severity = Annotated[str | None, typer.Option(help="high, medium or low.")]
States = Annotated[
    list[State] | None,
    typer.Option("--state", case_sensitive=False, help="All but RESOLVED, where none is named."),
]
Most = Annotated[int, typer.Option(min=0, help="How many, the gravest first; 0: all of them.")]
Note = Annotated[str, typer.Option(help="Why; kept with your name.")]
By = Annotated[str | None, typer.Option(help="Who decides; the user of this machine.")]
UNRESOLVED = (State.OPEN, State.ASSIGNED, State.PENDING)
LATER = (
    "The tables that analysts open show it from the next publication on; "
    "`partner-sync publish` publishes at once."
)
app = typer.Typer()
group = typer.Typer(help="What does not agree between usage and billing, and what became of it.")
app.add_typer(group, name="breaks")


@group.callback(invoke_without_command=True)
def breaks(  # noqa: PLR0913, PLR0917 a signature of Typer's: one option a filter
    context: typer.Context,
    rule: Rule = None,
    partner: Partner = None,
    month: Month = None,
    severity: Severity = None,
    state: States = None,
    most: Most = 50,
) -> None:
    """List the breaks that stand, the gravest first, and their totals by currency."""
    if context.invoked_subcommand is None:
        list_(rule, partner, month, severity, state, most)


@group.command("list")
def list_(  # noqa: PLR0913, PLR0917 as breaks
    rule: Rule = None,
    partner: Partner = None,
    month: Month = None,
    severity: Severity = None,
    state: States = None,
    most: Most = 50,
) -> None:
    """List the breaks that stand, the gravest first, and their totals by currency."""
    day = month.date() if month else None
    chosen = Chosen(rule, partner, day, severity, state or UNRESOLVED)
    with run.open(settings.load()) as session:
        found = run.broken(session, chosen)
    if not found:
        screen.OUT.print("no break that was asked for (resolved ones: --state RESOLVED)")
        return
    shown = found[:most] if most else found
    screen.show([_row(each) for each in shown])
    if len(shown) < len(found):
        screen.OUT.print(f"and {len(found) - len(shown):,} more: --most 0 shows all")
    screen.show([*_sums(found)], "billed less used, of all of them")


def _row(each: Break) -> dict[str, Any]:
    finding = each.standing.finding
    return {
        "break": finding.break_id,
        "rule": finding.rule,
        "severity": each.severity,
        "partner": each.partner,
        "month": f"{finding.month:%Y-%m}" if finding.month else None,
        "currency": finding.currency,
        "difference": _amount(finding.difference, finding.currency),
        "days": each.age,
        "state": each.standing.state.value + (" (paging artefact)" if each.artefact else ""),
        "owner": each.standing.owner,
    }


def _sums(found: Sequence[Break]) -> Iterator[dict[str, Any]]:
    sums = run.break_totals(found)
    for currency, (count, difference) in sums.items():
        yield {"currency": currency, "breaks": count, "difference": _amount(difference, currency)}
    if rest := len(found) - sum(count for count, _difference in sums.values()):
        yield {"currency": "no amount", "breaks": rest, "difference": None}


@group.command()
def show(break_id: str) -> None:
    """Show one break: what was found, since when, and what people did with it."""
    with run.open(settings.load()) as session:
        found, acts = run.break_trail(session, break_id)
    stands, finding = found.standing, found.standing.finding
    facts = _row(found) | {
        "connection": finding.connection,
        "subject": finding.subject,
        "cause": finding.cause,
        "used": _amount(finding.used_amount, finding.currency),
        "billed": _amount(finding.billed_amount, finding.currency),
        "rows": finding.rows,
        "artefact": found.artefact_reason,
        "first seen (UTC)": f"{stands.first_seen:%Y-%m-%d %H:%M}",
        "last seen (UTC)": f"{stands.last_seen:%Y-%m-%d %H:%M}",
        "resolved by": stands.resolved_by,
    }
    kept = {name: value for name, value in facts.items() if value not in {None, ""}}
    screen.show([{"": name, finding.break_id: value} for name, value in kept.items()])
    done = [_done(each, finding.currency) for each in acts]
    screen.show(done) if done else screen.OUT.print("nobody did anything with it yet")


def _amount(amount: Decimal | None, currency: str | None) -> Decimal | None:
    return amount if amount is None or currency is None else currencies.shown(amount, currency)


def _done(each: Act, currency: str | None) -> dict[str, Any]:
    return {
        "when (UTC)": f"{each.at:%Y-%m-%d %H:%M}",
        "who": each.by,
        "did": each.act.value,
        "owner": each.owner,
        "difference then": _amount(each.amount, currency),
        "why": each.words,
    }


@group.command()
def assign(
    break_id: str,
    to: Annotated[str, typer.Option(help="Who looks after it.")],
    pending: Annotated[  # noqa: FBT002 an option of Typer's
        bool, typer.Option("--pending", help="It waits for a correction or an answer.")
    ] = False,
    note: Note = "",
    by: By = None,
) -> None:
    """Give a break an owner; with --pending say that it waits for somebody else."""
    _required(to=to)
    kind = Kind.PEND if pending else Kind.ASSIGN
    _decide(replace(_act(break_id, kind, by), owner=to, note=note))


@group.command()
def resolve(
    break_id: str,
    reason: Annotated[Reason, typer.Option(help="Which kind of reason.")],
    note: Note,
    by: By = None,
) -> None:
    """Say that a break needs nothing more; it opens again where its difference changes."""
    _required(note=note)
    _decide(replace(_act(break_id, Kind.RESOLVE, by), reason=reason.value, note=note))


@group.command()
def reopen(break_id: str, note: Note, by: By = None) -> None:
    """Take back that a break was resolved."""
    _required(note=note)
    _decide(replace(_act(break_id, Kind.REOPEN, by), note=note))


def _required(**given: str) -> None:
    for name, text in given.items():
        if not text.strip():
            raise ConfigurationError(f"--{name} is empty: it is kept with the break for good")


def _act(break_id: str, kind: Kind, by: str | None) -> Act:
    return Act(break_id, kind, by or getpass.getuser(), settings.load().clock.now())


def _decide(act: Act) -> None:
    with run.open(settings.load()) as session:
        stands = run.decide_break(session, act)
    owner = f", {stands.owner} looks after it" if stands.owner else ""
    screen.OUT.print(escape(f"{stands.break_id} is {stands.state}{owner}"), soft_wrap=True)
    screen.OUT.print(LATER, soft_wrap=True)
