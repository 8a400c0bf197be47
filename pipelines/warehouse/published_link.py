"""Here: the symlink that says which of several files is published, read and moved.

Not here: the files that it may name (version_files, books).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pipelines.core.errors import StorageFailed
from pipelines.core.files import storing
from pipelines.files.store import FileStore


@dataclass(frozen=True)
class PublishedLink:
    """A symlink to a published file, whose name matches `name`.

    `target` and `nothing` are words of its messages, `command` is the one that publishes again.
    """

    path: Path
    name: re.Pattern[str]
    store: FileStore
    target: str
    nothing: str
    command: str

    def read(self) -> re.Match[str] | None:
        """Return the name of the published file, which may be lost; None if there is no symlink.

        Raises StorageFailed where something else has the symlink's name.
        """
        try:
            file = self.store.published(self.path)
        except OSError:  # a file or a folder
            named = None
        else:
            if file is None:
                return None
            named = self.name.fullmatch(file.name)
        if named is None:
            raise StorageFailed(
                f"{self.path} is not a symlink to {self.target}. It was not changed. "
                f"{self.nothing} can be published until it is moved.",
                f"Move {self.path} away, then run {self.command}.",
            )
        return named

    def move(self, file: Path | None, command: str) -> None:
        """Publish a file, or nothing. Raises StorageFailed, Superseded.

        `command` is the one that goes on where the disk was full.
        """
        if file is not None:
            self.read()  # refuses to replace a file that is not our symlink
        with storing(self.path, command):
            self.store.publish(self.path, file)
