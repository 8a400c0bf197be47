"""The verb `check`: can we connect, what may we read, and do the clocks agree?"""

from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.api.preflight import Report
from pipelines.cli import screen

app = typer.Typer()


@app.command()
def check(
    connection: Annotated[
        list[str] | None, typer.Option(help="This connection only; may be repeated.")
    ] = None,
) -> None:
    """Fetch a token, ask who we are and for one record of each list; store none of it."""
    passed = True
    with run.open(settings.load()) as session:
        for name in connection or session.settings.connections():
            report = run.check(session, session.settings.connection(name))
            _show(name, report)
            passed &= report.passed
    raise typer.Exit(0 if passed else 1)


def _show(name: str, report: Report) -> None:
    rows = [
        {"route": each.route, "answer": each.words, "": "no" if each.error else "yes"}
        for each in report.routes
    ]
    screen.show(rows, f"what connection {name} may read")
    if report.skew is None:
        return
    if report.skew.tolerable:
        screen.OUT.print(f"clocks agree well enough: {escape(str(report.skew))}")
    else:
        words = f"{report.skew}: set this machine's clock (NTP), or days and waits go wrong"
        screen.ERR.print(f"[yellow]warning[/] {escape(words)}", soft_wrap=True)
