"""Where tables can be exported to, one file each.

To add one: a new file here that declares one `Destination`. Of files it says how one table is
written (`one_file_each`); the folder, its temporary name and the link are base.py's. The verb
`export` and docs/analysts.md derive from `DESTINATIONS`.
"""

from collections.abc import Sequence
from pathlib import Path

from pipelines.clock import Clock
from pipelines.destinations.base import Destination, Export, Parcel, run
from pipelines.errors import ConfigurationError
from pipelines.settings import Home
from pipelines.shelf import members
from pipelines.warehouse import published

__all__ = ["DESTINATIONS", "Destination", "Export", "chosen", "export"]

DESTINATIONS = members(__name__, __path__, Destination)


def export(home: Home, tables: Sequence[str], to: str, out: Path | None, clock: Clock) -> Export:
    """Write tables of the published file somewhere else; all of current and history, unless named.

    Raises ConfigurationError for what nobody knows, NothingPublished, ExportFailed or
    StorageFailed for the rest.
    """
    destination = chosen(to)
    if out is not None and not destination.files:
        raise ConfigurationError("--out is a folder for files; a database has its own place")
    with published.opened(home) as source:
        folder = (out or home.exports).absolute()
        parcel = Parcel(source, source.tables(tables), folder, to)
        return run(destination, parcel, clock.now())


def chosen(to: str) -> Destination:
    """Return the destination of that name, or the database whose URL is in a variable so named.

    Raises ConfigurationError, which never quotes what was given: it may be a URL with a password.
    """
    named = {each.name: each for each in DESTINATIONS}
    files = [each.name for each in DESTINATIONS if each.files]
    if to in files:
        return named[to]
    if not to.isidentifier() or to in named:
        raise ConfigurationError(
            f"--to takes {', '.join(files)}, or the NAME of an environment variable that holds a "
            "database's SQLAlchemy URL (never the URL: it holds a password, and others see options)"
        )
    return named["sql"]
