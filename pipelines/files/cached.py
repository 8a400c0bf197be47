"""Here: a bucket keeps the files of a home; the folder of the home has copies of them.

An object is named as its file is below the home. It is written before its file has its name here,
and before anything else names it; so a file that is here was kept. Not here: requests (bucket).
"""

import hashlib
import secrets
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from pipelines.core.errors import ConfigurationError, Superseded
from pipelines.core.files import (
    PRIVATE_FILE,
    durable_rename,
    held,
    private_folder,
    remove,
    replacing,
    share,
    storing,
    swap_symlink,
    write_durably,
)
from pipelines.files import pointer
from pipelines.files.bucket import Bucket, Content
from pipelines.files.pointer import FOLDERS, LINKS, POINTER, Pointer, PublishedFile
from pipelines.files.store import MARK, Kept

KEPT: Final = ("archive", "versions", "books", "closes", "reports", "statements")
# Of sealed scans, whose records may be erased.
SEALED: Final = "archive/*/*/*.zst"
# What the group in setting `readers` may read on each machine, as where it was written.
SHARED: Final = ("closes", "reports", "statements")
MODES: Final = {"versions": 0o444, "books": 0o444, "closes": 0o400}


class Copies(msgspec.Struct, frozen=True):
    """Of which bucket the files of a home are copies, and after how many erasures."""

    bucket: str
    erasures: int = 0


class CachedStore:
    """Keeps files of one home in a bucket, with copies in its folder `root`.

    `readers`: the group that may read some of them; None: nobody but this user.
    """

    def __init__(self, root: Path, bucket: Bucket, readers: str | None = None) -> None:
        self._root = root
        self._bucket = bucket
        self._readers = readers
        self._mark = root / MARK
        # As of the last `refresh`, or of the last change of this process.
        self._content: Content | None = None
        self._pointer = Pointer()

    def require_copies(self) -> None:
        """Make the folder one of copies from this bucket.

        Raises ConfigurationError for files that may be in no bucket: copies may be deleted.
        """
        with storing(self._mark):
            if self._mark.exists() and self._copies().bucket == self._bucket.url:
                return
            own = [folder for folder in KEPT if any((self._root / folder).glob("**/*"))]
            if own:
                raise ConfigurationError(
                    f"The home {self._root} has files that are not known to be copies from "
                    f"{self._bucket.url}: {', '.join(own)}. Nothing was changed.",
                    "Upload these folders to the bucket, move them away, then run the same "
                    "command again.",
                )
            self._write_mark(0)

    def put(self, part: Path, file: Path) -> None:
        """Upload the part, then rename it."""
        self._bucket.upload(part, self._name(file))
        durable_rename(part, file)

    def get(self, file: Path) -> Path:
        """Return the path of a file, which is downloaded if it is not here."""
        if not file.exists() and self._download(file) and file.parent.name in FOLDERS:
            self._follow()
        return file

    def get_again(self, file: Path) -> bool:
        """Download a file in place of the one that is here; return whether there is an object."""
        return self._download(file)

    def list(self, folder: Path, pattern: str) -> dict[Path, Kept]:
        """Return what is in the bucket."""
        found = dict[Path, Kept]()
        for name, kept in self._bucket.list(self._name(folder)).items():
            file = self._root / name
            if file.relative_to(folder).match(pattern):
                found[file] = kept
        return found

    def delete(self, file: Path) -> None:
        """Delete the object, then the copy."""
        self._bucket.delete(self._name(file))
        file.unlink(missing_ok=True)

    def delete_folder(self, folder: Path) -> None:
        """Delete the objects, then the copies."""
        for name in self._bucket.list(self._name(folder)):
            self._bucket.delete(name)
        remove(folder)

    def write(self, file: Path, content: bytes) -> None:
        """Write the object, then the copy."""
        self._bucket.upload(content, self._name(file))
        write_durably(file, content)

    def put_folder(self, part: Path, folder: Path, last: str) -> None:
        """Upload the files, one as the last, then rename the part."""
        names = sorted(file.name for file in part.iterdir() if file.name != last)
        for name in (*names, last):
            self._bucket.upload(part / name, self._name(folder / name))
        durable_rename(part, folder)

    def get_folder(self, folder: Path, last: str) -> Path:
        """Download what is not here, the last one last, so that a folder that has it is whole."""
        if not (folder / last).exists():
            objects = self.list(folder, "*")
            if folder / last in objects:
                others = [file for file in objects if file.name != last]
                for file in (*others, folder / last):
                    self.get(file)
        return folder

    def refresh(self) -> None:
        """Read the pointer, delete copies whose objects are gone, let the symlinks follow."""
        # Before the objects: another process writes an object first, then its copy.
        copies = {file for name in FOLDERS for file in (self._root / name).glob("v*.duckdb")}
        with storing(self._mark), self._alone():
            self._content = self._bucket.read(POINTER)
            self._pointer = self._decoded(self._content)
            for name in FOLDERS:
                copies -= self.list(self._root / name, "v*.duckdb").keys()
            for copy in copies:
                copy.unlink(missing_ok=True)
            if self._copies().erasures != self._pointer.erasures:
                self._forget()
                self._write_mark(self._pointer.erasures)
            self._point(self._pointer)

    def published(self, link: Path) -> Path | None:
        """Return what the pointer names."""
        target = self._pointer.published.get(link.name)
        return self._root / target.file if target else None

    def publish(self, link: Path, file: Path | None) -> None:
        """Change the pointer, then the symlink here. Raises Superseded."""
        published = dict(self._pointer.published)
        if published.pop(link.name, None) is None and file is None:
            return
        if file is not None:
            published[link.name] = self._described(file)
        self._change(replace(self._pointer, published=published))
        self._follow()

    def require_latest(self) -> None:
        """Read the pointer. Raises Superseded if it has changed."""
        if self._bucket.read(POINTER) != self._content:
            raise self._superseded()

    def note_erasure(self) -> None:
        """Count the erasure in the pointer. Raises Superseded."""
        self._change(replace(self._pointer, erasures=self._pointer.erasures + 1))

    def _change(self, new: Pointer) -> None:
        new = replace(new, change=secrets.token_hex(8))
        content = self._bucket.write(POINTER, pointer.encode(new), self._content)
        if content is None:
            raise self._superseded()
        self._content = content
        self._pointer = new

    def _superseded(self) -> Superseded:
        return Superseded(
            f"Another process has changed what is published in {self._bucket.url} since this one "
            "began. This one publishes nothing. Analysts see what the other one has published.",
            "Run the same command again.",
        )

    def _decoded(self, content: Content | None) -> Pointer:
        if content is None:
            return Pointer()
        return pointer.decode(content.data, self._bucket.url)

    def _described(self, file: Path) -> PublishedFile:
        with storing(file), self.get(file).open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
        size = file.stat().st_size
        return PublishedFile(self._name(file), digest, size, datetime.now(UTC))

    def _follow(self) -> None:
        """Let the symlinks here follow the pointer as it is now, which may be of another process.

        What this process knows stays: it must not publish on what it has not seen.
        """
        with storing(self._mark), self._alone():
            self._point(self._decoded(self._bucket.read(POINTER)))

    def _point(self, now: Pointer) -> None:
        """Point the symlinks to what is published, as far as it is here."""
        for name in LINKS:
            link = self._root / name
            target = now.published.get(name)
            is_own_file = link.exists() and not link.is_symlink()
            if is_own_file:
                continue
            if target is None:
                link.unlink(missing_ok=True)
            elif (self._root / target.file).exists():
                swap_symlink(link, target.file)

    def _forget(self) -> None:
        """Delete copies of which some may have what was erased."""
        for copy in self._root.glob(SEALED):
            copy.unlink(missing_ok=True)
        remove(self._root / "exports")
        remove(self._root / "reports")
        remove(self._root / "statements")

    def _copies(self) -> Copies:
        return msgspec.json.decode(self._mark.read_bytes(), type=Copies)

    def _write_mark(self, erasures: int) -> None:
        write_durably(self._mark, msgspec.json.encode(Copies(self._bucket.url, erasures)))

    def _alone(self) -> AbstractContextManager[None]:
        """Keep other processes of this machine from changing symlinks and copies in a block."""
        return held(private_folder(self._root / "locks") / "copies.holder")

    def _name(self, file: Path) -> str:
        return file.relative_to(self._root).as_posix()

    def _download(self, file: Path) -> bool:
        name = self._name(file)
        folder, _separator, _rest = name.partition("/")
        with storing(file), suppress(FileNotFoundError):
            private_folder(file.parent)
            with replacing(file, MODES.get(folder, PRIVATE_FILE)) as part:
                self._bucket.download(name, part)
            if folder in SHARED:
                for shared in (file, *file.relative_to(self._root).parents[:-1]):
                    share(self._root / shared, self._readers)
            return True
        return False
