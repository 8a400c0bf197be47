"""Reads and writes the files beside a statement: what is kept of it, and that it was sent."""

from pathlib import Path
from typing import TypeVar

import msgspec

from pipelines.core.files import share, storing
from pipelines.core.text import printable
from pipelines.finance.statements import FORMAT
from pipelines.versions.stores import Stores


class Kept(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What such a file says, as JSON."""

    format: int = FORMAT


KeptType = TypeVar("KeptType", bound=Kept)


class KeptUnreadable(Exception):
    """A file beside a statement cannot be read; the text says why."""


def read_kept(stores: Stores, file: Path, kind: type[KeptType]) -> KeptType:
    """Return what a file says. Raises KeptUnreadable, also for one of a newer format."""
    try:
        kept = msgspec.json.decode(stores.warehouse.store.get(file).read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise KeptUnreadable(printable(error)) from error
    if kept.format > FORMAT:
        raise KeptUnreadable(
            f"it has format {kept.format}, and this partner-sync reads formats up to {FORMAT}"
        )
    return kept


def write_kept(stores: Stores, file: Path, kept: Kept, command: str) -> None:
    """Write what a file says; `command` is what writes it again. Raises StorageFailed."""
    write_file(stores, file, msgspec.json.format(msgspec.json.encode(kept)), command)


def write_file(stores: Stores, file: Path, content: bytes, command: str) -> None:
    """Write a file that readers of the home may read, as `write_kept` does."""
    with storing(file, command):
        stores.warehouse.store.write(file, content)
        share(file, stores.settings.readers)
