"""The verb `plan`: what would a sync cost now?"""

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.cli.sync import Connections, Streams
from pipelines.run import Choice
from pipelines.run.forecast import Plan

app = typer.Typer()


@app.command()
def plan(stream: Streams = None, connection: Connections = None) -> None:
    """Say what a sync would cost now, from the last proofs, and send nothing."""
    with run.open(settings.load()) as session:
        orders = run.orders(session, Choice(connection or (), stream or ()))
        planned = run.plan(session, orders)
    rows = [
        {
            "connection": each.connection,
            "stream": each.stream,
            "rows last time": each.rows,
            "requests": each.requests,
        }
        for each in planned.streams
    ]
    screen.show(rows)
    for line in _words(planned):
        screen.OUT.print(line, soft_wrap=True)


def _took(seconds: float) -> str:
    return f"about {seconds:,.0f} s" if seconds < 90 else f"about {seconds / 60:,.1f} minutes"  # noqa: PLR2004


def _words(planned: Plan) -> list[str]:
    lines = [
        f"requests: {planned.requests:,}, and {planned.tokens:,} for tokens",
        f"{_took(planned.seconds)}, so done by {planned.ends:%Y-%m-%d %H:%M:%S} UTC",
    ]
    lines += planned.notes
    if planned.unknown:
        lines.append(f"never read, so not in this sum: {', '.join(planned.unknown)}")
    night = f"the next night begins at {planned.scheduled:%Y-%m-%d %H:%M %Z}"
    warning = "; it would not be over by then" if planned.collides else ""
    return [*lines, night + warning]
