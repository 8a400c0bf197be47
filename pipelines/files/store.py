"""Here: how files of a home are kept for good, whatever keeps them; and the plain folder.

Every path is below the folder of the home. Who writes a file writes a part with another name, and
gives that to `put`. Not here: a bucket that keeps them (cached).
"""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from pipelines.core.files import durable_rename, remove, swap_symlink, write_durably

MARK: Final = "copies.json"  # in a home whose files are copies of a bucket's


class Kept(NamedTuple):
    """What is known of a file without reading it. Times are of whatever keeps it."""

    bytes: int
    written_at: datetime


class FileStore(Protocol):
    """Keeps finished files of one home. What it raises is OSError or PartnerSyncError."""

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

    def list(self, folder: Path, pattern: str) -> dict[Path, Kept]:
        """Return the files below a folder that match a pattern."""
        ...

    def delete(self, file: Path) -> None:
        """Delete a file, if it is kept."""
        ...

    def delete_folder(self, folder: Path) -> None:
        """Delete a folder with all that is in it, if it is kept."""
        ...

    def write(self, file: Path, content: bytes) -> None:
        """Keep a small private file, also in place of another one."""
        ...

    def put_folder(self, part: Path, folder: Path, last: str) -> None:
        """Keep a finished, durable folder of files, of which one is written last.

        Until this returns, the folder is not there, or whole.
        """
        ...

    def get_folder(self, folder: Path, last: str) -> Path:
        """Return the path of a folder whose files are here. If none is kept, it does not exist."""
        ...

    def refresh(self) -> None:
        """Learn what is published now, and delete copies of what is not kept any more.

        Where files are erased, all copies of that time are deleted.
        """
        ...

    def published(self, link: Path) -> Path | None:
        """Return the file that was published at a link when `refresh` was called last."""
        ...

    def publish(self, link: Path, file: Path | None) -> None:
        """Publish a file that is kept (None: nothing) at a link.

        Raises Superseded where another process has published since `refresh`.
        """
        ...

    def require_latest(self) -> None:
        """Raise Superseded where another process has published since `refresh`."""
        ...

    def note_erasure(self) -> None:
        """Let every other machine delete its copies before it uses one again."""
        ...


class FolderStore:
    """Keeps files where they are: the folder of the home has the only copy, symlinks publish."""

    def put(self, part: Path, file: Path) -> None:
        """Rename the part."""
        durable_rename(part, file)

    def get(self, file: Path) -> Path:
        """Return the path as it is."""
        return file

    def get_again(self, file: Path) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def list(self, folder: Path, pattern: str) -> dict[Path, Kept]:
        """Return what is in the folder."""
        found = dict[Path, Kept]()
        for file in folder.glob(pattern):
            with suppress(FileNotFoundError):  # deleted meanwhile
                if file.is_file():
                    state = file.stat()
                    written_at = datetime.fromtimestamp(state.st_mtime, UTC)
                    found[file] = Kept(state.st_size, written_at)
        return found

    def delete(self, file: Path) -> None:
        """Delete the file."""
        remove(file)

    def delete_folder(self, folder: Path) -> None:
        """Delete the folder."""
        remove(folder)

    def write(self, file: Path, content: bytes) -> None:
        """Write the file."""
        write_durably(file, content)

    def put_folder(self, part: Path, folder: Path, last: str) -> None:  # noqa: ARG002
        """Rename the part."""
        durable_rename(part, folder)

    def get_folder(self, folder: Path, last: str) -> Path:  # noqa: ARG002
        """Return the path as it is."""
        return folder

    def refresh(self) -> None:
        """Do nothing: the symlinks say it at any time."""

    def published(self, link: Path) -> Path | None:
        """Return the target of a symlink. Raises OSError for another file of this name."""
        try:
            return link.parent / link.readlink()
        except FileNotFoundError:
            return None

    def publish(self, link: Path, file: Path | None) -> None:
        """Point a symlink to a file, or delete it."""
        if file is None:
            remove(link)
        else:
            swap_symlink(link, str(file.relative_to(link.parent)))

    def require_latest(self) -> None:
        """Do nothing: who holds the lock is the only one that publishes."""

    def note_erasure(self) -> None:
        """Do nothing: there are no other copies."""


IN_FOLDER = FolderStore()
