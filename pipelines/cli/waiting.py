"""What the verbs that take a person's word say: what awaits one, and what became of it."""

from collections.abc import Sequence

from rich.markup import escape

from pipelines.cli import screen
from pipelines.run import Publication
from pipelines.warehouse.awaiting import Awaiting


def show(waiting: Sequence[Awaiting]) -> None:
    """Name every reading that awaits a word, and the command that gives it."""
    for each in waiting:
        command = f"partner-sync {each.kind} accept {each.stream} --connection {each.connection}"
        words = f"{each.manifest} is held back: {each.words} To accept it: {command}"
        screen.OUT.print(escape(words), soft_wrap=True)


def accepted(held: Awaiting, publication: Publication) -> int:
    """Say what a word let happen; return the exit code."""
    screen.OUT.print(escape(f"{held.stream}: accepted for {held.manifest}"), soft_wrap=True)
    lacking = [words for each in publication.lacking for words in each]
    for words in lacking:
        screen.ERR.print(escape(words), soft_wrap=True)
    if publication.version is None:
        return 1
    return 3 if lacking else 0
