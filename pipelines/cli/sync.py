"""The verb `sync`: read today's lists, fold them, publish them."""

from typing import Annotated

import typer

from pipelines import run, settings, streams
from pipelines.cli import screen
from pipelines.errors import ConfigurationError
from pipelines.settings import Settings
from pipelines.streams.base import Stream

app = typer.Typer()


def chosen(names: list[str], own: Settings) -> tuple[Stream, ...]:
    """Return the named streams, all of them where none is named."""
    known = {stream.name: stream for stream in streams.known(own)}
    for name in names:
        if name not in known:
            raise ConfigurationError(f"no stream {name!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names or known))


@app.command()
def sync(
    stream: Annotated[
        list[str] | None, typer.Option(help="Read this stream only; may be repeated.")
    ] = None,
) -> None:
    """Read today's lists, fold and publish them. Exit codes: 0, 1, 2, 3 as in the README."""
    own = settings.load()
    selected = chosen(stream or [], own)
    with screen.watching() as watch, run.open(own, watch) as session:
        outcome = run.sync(session, [run.today(session, selected)])
    screen.closing(outcome, own.place.link)
    raise typer.Exit(outcome.exit_code)
