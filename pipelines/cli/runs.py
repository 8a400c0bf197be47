"""The verb `runs`: what was run, when, and what it cost."""

from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.state import runs as ledger
from pipelines.state.runs import Run

app = typer.Typer()


@app.command()
def runs(
    last: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
) -> None:
    """List the latest runs: outcome, requests, 429s, seconds waited for the request budget."""
    with run.open(settings.load()) as session:
        rows = [_row(each) for each in ledger.latest(session.ledger, last)]
    screen.show(rows) if rows else screen.OUT.print("nothing was run yet")


def _row(each: Run) -> dict[str, object]:
    took = each.ended_at - each.begun_at if each.ended_at else None
    return {
        "begun (UTC)": f"{each.begun_at:%Y-%m-%d %H:%M:%S}",
        "connection": each.connection,
        "day": each.day,
        "took": "" if took is None else f"{took.total_seconds():,.1f} s",
        "requests": each.requests,
        "429s": each.refused,
        "seconds waited": round(each.waited, 1),
        "outcome": each.outcome or "running or killed",
        "run": each.run[:8],  # enough to tell it apart
    }
