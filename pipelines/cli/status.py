"""The verb `status`: what is proven and published, and what is the matter."""

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run.alerting import Stands
from pipelines.run.standing import Status, StreamStatus

app = typer.Typer()


@app.command()
def status() -> None:
    """Say what was last proven and published of every list, what is the matter, which alerts stand.

    Nobody is told of alerts, nothing is sent.
    """
    own = settings.load()
    with run.open(own) as session:
        found = run.status(session, run.orders(session))
    screen.show([_row(each) for each in found.streams])
    for line in [*_words(found), *(_alert(each) for each in found.alerts)]:
        screen.OUT.print(line, soft_wrap=True)


def _row(each: StreamStatus) -> dict[str, object]:
    manifest = each.manifest
    return {
        "connection": each.connection,
        "stream": each.stream,
        "read (UTC)": f"{manifest.proof.ended_at:%Y-%m-%d %H:%M}" if manifest else "",
        "rows": manifest.proof.rows if manifest else None,
        "proof": manifest.proof.grade.words if manifest else "",
        "published": "yes" if each.published else "no",
        "now": each.trouble,
    }


def _words(found: Status) -> list[str]:
    version = found.version
    lines = ["nothing was published yet"]
    if version:
        lines = [f"analysts open {version.file}, of {version.published_at:%Y-%m-%d %H:%M} UTC"]
    if found.rolled_back:
        lines.append(f"[yellow]{escape(found.rolled_back.words)}[/]")
    lines += [escape(each.words) for each in found.budgets]
    return [*lines, f"the next night begins at {found.night:%Y-%m-%d %H:%M %Z}"]


def _alert(each: Stands) -> str:
    since = f" told since {each.since:%Y-%m-%d %H:%M} UTC:" if each.since else ""
    return f"[bold red]alert[/]{since} {escape(each.standing.words)}"
