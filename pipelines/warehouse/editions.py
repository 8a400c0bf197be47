"""Where published versions are kept, and which of them analysts open.

Of a home's own warehouse each is a file behind one link; of a lake a snapshot. Not here: when a
version is made, and of what (publish).
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import Protocol

import duckdb

from pipelines.errors import PublicationFailed
from pipelines.state.versions import Version
from pipelines.warehouse import database, link
from pipelines.warehouse.database import Work
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.snapshots import Snapshots
from pipelines.warehouse.totals import agreed


class Editions(Protocol):
    """The published versions of one warehouse; for who publishes."""

    @property
    def title(self) -> str:
        """What analysts open."""

    @property
    def remedy(self) -> str:
        """What to do where a version is damaged."""

    @property
    def numbers(self) -> list[int]:
        """The versions that can be opened, the oldest first."""

    def name(self, number: int) -> str:
        """Return what a version is called."""

    def put(self, version: Version) -> Version:
        """Keep what the tables hold as a version; return it, verified."""

    def reading(self, version: Version) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Yield a connection that reads a version, whatever is published meanwhile."""

    def verify(self, version: Version) -> None:
        """Raise PublicationFailed unless what is kept is what was published."""

    def opens(self, version: Version) -> bool:
        """Tell whether a version is what analysts open."""

    def unchanged(self, last: Version, opened: Version) -> bool:
        """Tell, cheaply, that `opened` is open and nothing was written since `last`, the newest."""

    def point(self, version: Version) -> None:
        """Let analysts open a version: in one step."""

    def keep_only(self, numbers: Collection[int], *, now: bool = False) -> list[str]:
        """Let go of all other versions; return their names. `now`: with all that they hold."""

    def tidy(self) -> None:
        """Let what analysts read lie in few files; for the first publication of a day."""


def editions(work: Work | Lake) -> Editions:
    """Return the versions of a warehouse."""
    return Snapshots(work) if isinstance(work, Lake) else Files(work)


@dataclass(frozen=True)
class Files:
    """The published files of one home, and the link that leads to one of them."""

    work: Work

    @property
    def title(self) -> str:
        """What analysts open."""
        return self.work.home.link.name

    @property
    def remedy(self) -> str:
        """What to do where a version's file is damaged."""
        return "Delete it, then run `partner-sync publish`"

    @property
    def numbers(self) -> list[int]:
        """The versions that can be opened, the oldest first."""
        return list(link.files(self.work.home))

    def name(self, number: int) -> str:
        """Return the name of a version's file."""
        return link.name(number)

    def put(self, version: Version) -> Version:
        """Put a verified copy of the work database under a version's name; return it with its hash.

        Raises PublicationFailed, StorageFailed.
        """
        whole = replace(version, sha256=_digest(self.work.file))
        link.put(
            self.work.home, self.work.file, self._file(version), lambda part: verify(part, whole)
        )
        return whole

    def reading(self, version: Version) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Yield a connection that reads a version's file."""
        return database.reading(self._file(version), self.work.memory_limit)

    def verify(self, version: Version) -> None:
        """Raise PublicationFailed unless a version's file is what was published."""
        verify(self._file(version), version)

    def opens(self, version: Version) -> bool:
        """Tell whether the link leads to a version's file."""
        return link.leads_to(self.work.home, version)

    def unchanged(self, last: Version, opened: Version) -> bool:
        """Return False: to look into the file costs next to nothing."""
        del last, opened
        return False

    def point(self, version: Version) -> None:
        """Let the link lead to a version's file."""
        link.point(self.work.home, self._file(version))

    def keep_only(self, numbers: Collection[int], *, now: bool = False) -> list[str]:
        """Remove all other files; who has one open goes on reading it."""
        del now  # a file that nobody has open is gone at once
        return link.keep_only(self.work.home, numbers)

    def tidy(self) -> None:
        """Do nothing: a version is one file."""

    def _file(self, version: Version) -> Path:
        return self.work.home.published / version.file


def verify(file: Path, version: Version) -> None:
    """Raise PublicationFailed unless a file is what was published, byte for byte and row for row.

    The rows are counted and summed again: equal bytes that cannot be read would be of no use.
    """
    fault = "" if _digest(file) == version.sha256 else f"the bytes of {version.file} differ"
    try:
        with database.reading(file) as reader:
            agreed(reader, version, fault)
    except duckdb.Error as error:
        raise PublicationFailed(
            f"{version.file} cannot be opened: {error}; the last published file stays"
        ) from None


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
