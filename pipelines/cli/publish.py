"""The verb `publish`: what is folded, again, or an older version; nothing is sent."""

import getpass
from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.errors import ConfigurationError
from pipelines.run import Session
from pipelines.state import versions
from pipelines.state.versions import Version

app = typer.Typer()


@app.command()
def publish(
    rollback: Annotated[  # noqa: FBT002 an option of Typer's
        bool, typer.Option("--rollback", help="Let analysts open the version before.")
    ] = False,
    to: Annotated[int | None, typer.Option(min=1, help="Rather this one; with --rollback.")] = None,
    reason: Annotated[str, typer.Option(help="Why; with --rollback.")] = "",
    by: Annotated[str | None, typer.Option(help="Who decides; the user of this machine.")] = None,
) -> None:
    """Publish what is folded, or step back to an older version until something new is folded."""
    if not rollback and (to or reason):
        raise ConfigurationError("--to and --reason go with --rollback")
    own = settings.load()
    with screen.watching(own) as watch, run.open(own, watch) as session:
        person = by or getpass.getuser()
        words = _rolled_back(session, to, person, reason) if rollback else _published(session)
    screen.OUT.print(words, markup=False, soft_wrap=True)


def _published(session: Session) -> str:
    version = run.publish_folded(session)
    if version is None:
        return "nothing was folded yet: nothing to publish (partner-sync sync reads and folds)"
    return _opened(session, version)


def _rolled_back(session: Session, to: int | None, person: str, reason: str) -> str:
    return _opened(session, run.roll_back(session, to, person, reason))


def _opened(session: Session, version: Version) -> str:
    back = versions.rolled_back(session.ledger)
    return f"analysts open {version.file}" + (f"; {back.words}" if back else "")
