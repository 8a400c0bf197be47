"""The verb `check`: can we connect, what may we read, do the clocks agree; who hears alerts?"""

from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.api.preflight import Report
from pipelines.cli import screen
from pipelines.run import Watch

app = typer.Typer()


@app.command()
def check(
    connection: Annotated[
        list[str] | None, typer.Option(help="This connection only; may be repeated.")
    ] = None,
    *,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Only send each target of alerts a trial message.")
    ] = False,
) -> None:
    """Fetch a token, ask who we are and for one record of each list; store none of it."""
    if alerts:
        raise typer.Exit(_try_targets())
    passed = True
    with run.open(settings.load()) as session:
        for name in connection or session.settings.connections():
            report = run.check(session, session.settings.connection(name))
            _show(name, report)
            passed &= report.passed
    raise typer.Exit(0 if passed else 1)


def _try_targets() -> int:
    """Tell every target of alerts something; return the exit code."""
    with run.open(settings.load(), Watch(waiting=_said)) as session:
        tried = run.try_targets(session)
    screen.show(
        [
            {"target": each.target, "": "no" if each.error else "told", "why": each.error}
            for each in tried
        ],
        "who is told of alerts",
    )
    return 1 if any(each.error for each in tried) else 0


def _said(words: str) -> None:
    screen.ERR.print(escape(words), soft_wrap=True)


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
