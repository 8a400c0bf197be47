"""Archives of tests' own: in the home, or in a bucket where the variable TEST_ARCHIVE is set.

`make test-distributed` sets it. Here: where an archive lies, and harm done to what is in it. Not
here: the servers (tests/distributed).
"""

import os
from collections.abc import Callable
from importlib import import_module

from pipelines.warehouse.archive import Archive


def address() -> str | None:
    """Return the address of a new, empty place; None: the home itself."""
    if not os.environ.get("TEST_ARCHIVE"):
        return None
    places = import_module("tests.distributed.places")  # its packages are not in every environment
    os.environ.update(places.object_store().environment)
    return f"{places.bucket()}/archive"


def pages(archive: Archive) -> list[str]:
    """Return the names of the files of all pages."""
    return list(archive.store.sizes("pages"))


def lost(archive: Archive, name: str) -> None:
    """Remove a file, as nothing of ours does."""
    archive.store.remove([name])


def changed(archive: Archive, name: str, how: Callable[[bytes], bytes]) -> None:
    """Put something else in a file's place."""
    archive.store.put(name, how(archive.store.get(name)))
