"""The verb `check`: can we connect, and what may we read?"""

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.warehouse import frames

app = typer.Typer()


@app.command()
def check() -> None:
    """Fetch a token, ask who we are and for one record of each list; store none of it."""
    with run.open(settings.load()) as session:
        report = run.check(session, session.settings.connection())
    rows = [
        {"route": each.route, "answer": each.words, "": "no" if each.error else "yes"}
        for each in report.routes
    ]
    screen.show(frames.from_rows(rows), "what this connection may read")
    raise typer.Exit(0 if report.passed else 1)
