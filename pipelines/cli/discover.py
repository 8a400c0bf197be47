"""The verb `discover`: which lists the interface has, and what to write to read more of them."""

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run.discovery import Discovery, Listed

NAMES = 4  # of fields, in one line
app = typer.Typer()


@app.command()
def discover() -> None:
    """Read the interface description and list what can be read; no credentials are sent.

    Exit codes: 0 described; 1 no description was found for a service; 2 configuration.
    """
    with run.open(settings.load()) as session:
        found = run.discover(session)
    for each in found:
        _tell(each)
    raise typer.Exit(0 if all(each.described for each in found) else 1)


def _tell(found: Discovery) -> None:
    title = f"lists of {', '.join(found.connections)} ({found.words})"
    screen.show([_row(each) for each in found.lists], escape(title))
    if offers := [each.offer for each in found.lists if each.offer]:
        screen.OUT.print("to read more, write into config/settings.toml what you need of:\n")
        screen.OUT.print(escape("\n\n".join(offers)) + "\n")
    for change in found.changes:
        said = f"{change.first_seen_at:%Y-%m-%d} {change}"
        screen.OUT.print(escape(said), soft_wrap=True)


def _row(each: Listed) -> dict[str, object]:
    more = [f"and {len(each.fields) - NAMES} more"] if len(each.fields) > NAMES else []
    return {
        "path": each.path,
        "surface": each.surface or "not said",
        "largest limit": each.largest,
        "filters": ", ".join(each.filters),
        "fields": ", ".join([*each.fields[:NAMES], *more]),
        "read": each.read,
    }
