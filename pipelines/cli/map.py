"""The verb `map`: which field has which role, and what the data say for it; a person accepts it."""

import getpass
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.errors import ConfigurationError
from pipelines.run import Proposed

app = typer.Typer()


@app.command("map")
def map_(
    *,
    accept: Annotated[bool, typer.Option("--accept", help="Write config/mapping.toml.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also where a different one is there.")
    ] = False,
) -> None:
    """Propose which field has which role in reconciliation, from what is published.

    Exit codes: 0 proposed or accepted; 1 nothing is published; 2 mapping.toml is wrong, or another.
    """
    with run.open(settings.load()) as session:
        proposed = run.propose(session)
        _show(proposed)
        if accept or replace:
            _tell(run.accept_mapping(session, proposed, getpass.getuser(), anew=replace))
        elif proposed.wrong:
            raise ConfigurationError("; ".join(proposed.wrong))


def _show(proposed: Proposed) -> None:
    known = [each for each in proposed.proposals if each.path]
    rows = [
        {"role": each.role, "field": each.path, "evidence": "; ".join(each.evidence)}
        for each in known
    ]
    screen.show(rows, f"proposed from version {proposed.version}")
    others = [
        {
            "not mapped": each.role,
            "why": "; ".join(each.evidence),
            "not evaluated": ", ".join(run.needing(each.role)),
        }
        for each in proposed.proposals
        if not each.path
    ]
    if others:
        screen.show(others)
    changes = proposed.changes
    title = "mapping.toml says otherwise" if proposed.there else "there is no mapping.toml yet"
    if not changes:
        screen.OUT.print("mapping.toml says the same")
        return
    screen.OUT.print(f"{title}; to accept the proposal: partner-sync map --accept")
    for each in changes if proposed.there else ():
        screen.OUT.print(f"  {escape(each)}", soft_wrap=True)


def _tell(accepted: run.Accepted) -> None:
    if not accepted.written:
        screen.OUT.print(f"{escape(str(accepted.file))} says so already", soft_wrap=True)
        return
    for each in accepted.changes:
        screen.OUT.print(escape(each), soft_wrap=True)
    words = "the next sync, or partner-sync publish, goes by it"
    screen.OUT.print(f"written: {escape(str(accepted.file))}; {words}", soft_wrap=True)
