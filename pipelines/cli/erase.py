"""The verb `erase`: everything of one partner out of this home, for good."""

import getpass
from typing import Annotated

import typer
from rich import progress
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Act, Sought, Watch

app = typer.Typer()
WARNING = (
    "Every record that says it goes out of the archive, the tables and their history, and all "
    "published files but a new one are deleted. This cannot be undone. Go on?"
)


@app.command()
def erase(
    partner: Annotated[str, typer.Option(help="The identifier, as the records say it.")],
    reason: Annotated[str, typer.Option(help="Why, without the identifier in it.")] = "",
    by: Annotated[str | None, typer.Option(help="Who decides; the user of this machine.")] = None,
    within: Annotated[  # noqa: FBT002 an option of Typer's
        bool, typer.Option("--within", help="Also where it is a part of a longer text.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002
) -> None:
    """Erase every record that says an identifier; exit code 1 where a file says it all the same."""
    if not yes:
        typer.confirm(WARNING, abort=True)
    with progress.Progress(console=screen.ERR, transient=True) as bar:
        task = bar.add_task("archived pages", total=None)

        def told(done: int, every: int) -> None:
            bar.update(task, completed=done, total=every)

        def waiting(why: str) -> None:
            bar.console.print(f"[yellow]…[/] {escape(why)}")

        with run.open(settings.load(), Watch(waiting=waiting)) as session:
            act = Act(by or getpass.getuser(), session.clock.now(), reason)
            erased = run.erase(session, Sought(partner, within), act, told)
    for line in erased.words:
        screen.OUT.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(1 if erased.left else 0)
