"""Here: a bucket keeps the files of a home; the folder of the home has copies of them.

An object is named as its file is below the home. It is written before its file has its name here,
and before anything else names it; so a file that is here was kept. Not here: requests (bucket).
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import (
    PRIVATE_FILE,
    durable_rename,
    private_folder,
    replacing,
    storing,
    write_durably,
)
from pipelines.files.bucket import Bucket

MARK: Final = "copies-from"  # names the bucket in a home that has copies
FOLDERS: Final = ("archive", "versions", "books", "closes", "reports")
MODES: Final = {"versions": 0o444, "books": 0o444, "closes": 0o400}


class CachedStore:
    """Keeps files of one home in a bucket, with copies in its folder `root`."""

    def __init__(self, root: Path, bucket: Bucket) -> None:
        self._root = root
        self._bucket = bucket

    def require_copies(self) -> None:
        """Make the folder one of copies from this bucket.

        Raises ConfigurationError for files that may be in no bucket: copies may be deleted.
        """
        mark = self._root / MARK
        with storing(mark):
            if mark.exists() and mark.read_text("utf-8") == self._bucket.url:
                return
            own = [folder for folder in FOLDERS if any((self._root / folder).glob("**/*"))]
            if own:
                raise ConfigurationError(
                    f"The home {self._root} has files that are not known to be copies from "
                    f"{self._bucket.url}: {', '.join(own)}. Nothing was changed.",
                    "Upload these folders to the bucket, move them away, then run the same "
                    "command again.",
                )
            write_durably(mark, self._bucket.url.encode())

    def put(self, part: Path, file: Path) -> None:
        """Upload the part, then rename it."""
        self._bucket.upload(part, self._name(file))
        durable_rename(part, file)

    def get(self, file: Path) -> Path:
        """Return the path of a file, which is downloaded if it is not here."""
        if not file.exists():
            self._download(file)
        return file

    def get_again(self, file: Path) -> bool:
        """Download a file in place of the one that is here; return whether there is an object."""
        return self._download(file)

    def sizes(self, folder: Path, pattern: str) -> dict[Path, int]:
        """Return what is in the bucket."""
        found = dict[Path, int]()
        for name, size in self._bucket.sizes(self._name(folder)).items():
            file = self._root / name
            if file.relative_to(folder).match(pattern):
                found[file] = size
        return found

    def delete(self, file: Path) -> None:
        """Delete the object, then the copy."""
        self._bucket.delete(self._name(file))
        file.unlink(missing_ok=True)

    def _name(self, file: Path) -> str:
        return file.relative_to(self._root).as_posix()

    def _download(self, file: Path) -> bool:
        name = self._name(file)
        folder, _separator, _rest = name.partition("/")
        with storing(file), suppress(FileNotFoundError):
            private_folder(file.parent)
            with replacing(file, MODES.get(folder, PRIVATE_FILE)) as part:
                self._bucket.download(name, part)
            return True
        return False
