"""The verb `verify`: is everything in this home what it was when it was written?"""

import typer
from rich import progress
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Checked

app = typer.Typer()
BAR = (
    progress.TextColumn("{task.description}"),
    progress.BarColumn(bar_width=20),
    progress.DownloadColumn(),
    progress.TimeRemainingColumn(),
)


@app.command()
def verify() -> None:
    """Compare archive, ledger, tables and published files. Exit code 1 where something is wrong."""
    with progress.Progress(*BAR, console=screen.ERR, transient=True) as bar:
        task = bar.add_task("archived pages", total=None)

        def told(news: Checked) -> None:
            bar.update(task, completed=news.done, total=news.all)

        with run.open(settings.load()) as session:
            report = run.verify(session, told)
    for line in report.words:
        screen.OUT.print(line, markup=False, soft_wrap=True)
    for fault in report.faults:
        screen.ERR.print(f"[bold red]fault[/] {escape(str(fault))}", soft_wrap=True)
    raise typer.Exit(1 if report.faults else 0)
