"""Where the archive lies: a folder of the home, or an object store that several machines share.

Both give and take whole files by name ("pages/ab/abcd….json.zst"). Here: the interface and the
folder. Not here: the object store (objects), what the files are (archive, base, frozen).
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from pipelines.errors import StorageFailed
from pipelines.settings import Home
from pipelines.warehouse import link

READ_ONLY = 0o400


class Store(Protocol):
    """Files by name, each whole or not there.

    What is asked of it may raise StorageFailed: the disk takes nothing, the store is out of reach.
    """

    @property
    def apart(self) -> bool:
        """Whether the files lie elsewhere than in the home."""

    def where(self, name: str) -> str:
        """Return the path or address of a file, for people."""

    def get(self, name: str) -> bytes:
        """Return a file's content; raise an OSError where it is missing or cannot be read."""

    def each(self, names: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """Yield what returns each file's content, as `get` does; some are on their way at once."""

    def put(self, name: str, content: bytes) -> None:
        """Let a file appear whole, also in the place of another."""

    def create(self, name: str, content: bytes) -> None:
        """Let a file appear once; raise FileExistsError where there is one that says else."""

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""

    def lately(self, name: str) -> bool:
        """Tell the same, or what was so before the last `settle` of anybody could end."""

    def settle(self) -> None:
        """Wait until nobody's `lately` tells what was so before now."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of every file below a folder, by name and in their order."""

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; one that is gone already is no fault."""

    def drop(self, folder: str) -> None:
        """Remove a folder and all that is in it."""

    def file(self, name: str) -> AbstractContextManager[Path]:
        """Give a path at which the file's content can be read while the block lasts."""

    def making(self, folder: str, last: str) -> AbstractContextManager[Path]:
        """Give an empty folder; what is in it in the end appears, read-only, its `last` last."""

    def keep(self, file: Path, name: str) -> None:
        """Take a file from the work folder."""

    def sweep(self) -> None:
        """Remove what killed runs had not finished writing; only where no other writes."""


def opened(home: Home, address: str | None) -> Store:
    """Return where a home's archive lies: at the address of the setting `archive`, else in it."""
    if address is None:
        return Folder(home.archive)
    # fsspec and S3's client take half a second to load, which no home of one machine waits for.
    objects = import_module("pipelines.warehouse.objects")
    store: Store = objects.opened(address, home.work)
    return store


@dataclass(frozen=True)
class Folder:
    """The folder `archive` of one home: on one disk, which lasts."""

    root: Path
    apart: bool = False

    @cached_property
    def _root(self) -> str:
        return str(self.root)

    def where(self, name: str) -> str:
        """Return the path of a file."""
        return f"{self._root}/{name}"

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return Path(f"{self._root}/{name}")  # thrice as fast as "/"

    def get(self, name: str) -> bytes:
        """Read a file."""
        with open(f"{self._root}/{name}", "rb", 0) as file:  # noqa: PTH123 every page, and thrice
            return file.read()

    def each(self, names: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """Read each where it is asked for: a disk does not keep us waiting."""
        return (partial(self.get, name) for name in names)

    def put(self, name: str, content: bytes) -> None:
        """Let a file appear whole: not even a power cut leaves half of one under its name.

        Raises StorageFailed where the disk does not take it.
        """
        file = self.path(name)
        try:
            appear(file, content)
        except OSError as error:
            raise StorageFailed(
                f"{file} cannot be written: {error.strerror}. What was read until now is kept: "
                "make room and run sync again: it goes on."
            ) from None

    def create(self, name: str, content: bytes) -> None:
        """Write a file that is not there; only under a lock."""
        if not self.has(name):
            self.put(name, content)
        elif self.get(name) != content:
            raise FileExistsError(self.where(name))

    def has(self, name: str) -> bool:
        """Look whether there is such a file."""
        return os.path.exists(f"{self._root}/{name}")  # noqa: PTH110 thrice a page

    def lately(self, name: str) -> bool:
        """Look: it costs next to nothing."""
        return os.path.exists(f"{self._root}/{name}")  # noqa: PTH110 thrice a page

    def settle(self) -> None:
        """Return: everybody looks at the disk itself."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of the files below a folder, but of those that are being written."""
        skip = len(self._root) + 1
        return {path[skip:]: size for path, size in sorted(_files(f"{self._root}/{folder}"))}

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        return sorted(each.name for each in self.path(folder).glob("*") if each.is_dir())

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            self.path(name).unlink(missing_ok=True)

    def drop(self, folder: str) -> None:
        """Remove a folder and all that is in it."""
        shutil.rmtree(self.path(folder))

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """Yield the file itself."""
        yield self.path(name)

    @contextmanager
    def making(self, folder: str, last: str) -> Iterator[Path]:
        """Yield a folder that is renamed where the block ends well: it appears at once."""
        del last
        to = self.path(folder)
        making = to.with_name(f"{uuid4().hex}.making")
        try:
            making.mkdir(parents=True, mode=0o700)
            yield making
            for file in making.iterdir():
                link.fsync(file)
                file.chmod(READ_ONLY)
            link.fsync(making)
            making.rename(to)
            link.fsync(to.parent)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def keep(self, file: Path, name: str) -> None:
        """Move a file here: it lies on the same disk."""
        to = self.path(name)
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        link.fsync(file)
        file.replace(to)
        link.fsync(to.parent)

    def sweep(self) -> None:
        """Remove temporary names."""
        for file in self.root.rglob(".*.part"):
            file.unlink(missing_ok=True)


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the bytes of every file below a folder, and of none that is not there."""
    if os.path.isdir(folder):  # noqa: PTH112 a hundred thousand pages
        for each in os.scandir(folder):
            if each.is_dir():
                yield from _files(each.path)
            elif not each.name.startswith("."):
                yield each.path, each.stat().st_size


def appear(file: Path, content: bytes) -> None:
    """Write a file of mode 0600 that is there whole or not at all, even after a power cut."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f".{uuid4().hex}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(file)
    link.fsync(file.parent)
