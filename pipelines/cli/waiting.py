"""What the verbs that take a person's word share: what awaits one, the word, what became of it."""

import getpass
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Publication, Word
from pipelines.state.decisions import Kind
from pipelines.warehouse.awaiting import Awaiting

Connection = Annotated[str, typer.Option(help="Of which connection.")]
Note = Annotated[str, typer.Option(help="Why; kept with your name.")]


def show(waiting: Sequence[Awaiting]) -> None:
    """Name every reading that awaits a word, and the command that gives it."""
    for each in waiting:
        words = f"{each.manifest} is held back: {each.words} To accept it: {each.command}"
        screen.OUT.print(escape(words), soft_wrap=True)


def accept(kind: Kind, stream: str, connection: str, note: str) -> None:
    """Give a word about the newest reading that awaits one; exit as what is published then says."""
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session, run.alerted(session):
        word = Word(stream, connection, getpass.getuser(), note)
        held, publication = run.accept_waiting(session, kind, word)
    raise typer.Exit(_accepted(held, publication))


def _accepted(held: Awaiting, publication: Publication) -> int:
    """Say what a word let happen; return the exit code."""
    screen.OUT.print(escape(f"{held.stream}: accepted for {held.manifest}"), soft_wrap=True)
    lacking = [words for each in publication.lacking for words in each]
    for words in lacking:
        screen.ERR.print(escape(words), soft_wrap=True)
    if publication.version is None:
        return 1
    return 3 if lacking else 0
