"""Here: how files of a home are kept for good, whatever keeps them; and the plain folder.

Every path is below the folder of the home. Who writes a file writes a part with another name, and
gives that to `put`. Not here: a bucket that keeps them (cached).
"""

from pathlib import Path
from typing import Protocol

from pipelines.core.files import durable_rename


class FileStore(Protocol):
    """Keeps finished files of one home. What it raises is OSError or StorageFailed."""

    def put(self, part: Path, file: Path) -> None:
        """Keep a finished, durable part as a file; it loses its own name.

        Until this returns, the file is as it was before, or whole.
        """
        ...

    def get(self, file: Path) -> Path:
        """Return the path of a file whose content is here. If none is kept, it does not exist."""
        ...

    def get_again(self, file: Path) -> bool:
        """Replace a file that is damaged here; return False if there is no other copy of it."""
        ...

    def sizes(self, folder: Path, pattern: str) -> dict[Path, int]:
        """Return the files below a folder that match a pattern, with their sizes in bytes."""
        ...

    def delete(self, file: Path) -> None:
        """Delete a file, if it is kept."""
        ...


class FolderStore:
    """Keeps files where they are: the folder of the home has the only copy."""

    def put(self, part: Path, file: Path) -> None:
        """Rename the part."""
        durable_rename(part, file)

    def get(self, file: Path) -> Path:
        """Return the path as it is."""
        return file

    def get_again(self, file: Path) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def sizes(self, folder: Path, pattern: str) -> dict[Path, int]:
        """Return what is in the folder."""
        return {file: file.stat().st_size for file in folder.glob(pattern) if file.is_file()}

    def delete(self, file: Path) -> None:
        """Delete the file."""
        file.unlink(missing_ok=True)


IN_FOLDER = FolderStore()
