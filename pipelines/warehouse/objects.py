"""The archive on an object store, of whatever fsspec reaches: s3://bucket/prefix and others.

A file is one object, which such a store shows whole or not at all. Who asks and where it listens
tells the store's own environment (AWS_…). Loaded only where the setting `archive` is set.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EINVAL, ENOSYS
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from fsspec.core import url_to_fs

from pipelines.clock import SYSTEM
from pipelines.errors import StorageFailed

STORE = "AWS_"  # what the names of S3's own variables begin with
AT_ONCE = 8  # files on their way together: each takes some milliseconds, nearly all of them waiting
LATELY = 1.0  # seconds for which nothing new is looked for: every page would cost a request more
FETCHED = "fetched-"  # folders in work/ with copies, removed when a block ends or by the next sweep
KEPT = "What was read until now is kept: run it again when the store answers, it goes on."


def opened(address: str, scratch: Path) -> "Objects":
    """Return the store at an address; copies of its files are made below a folder.

    Raises StorageFailed where nothing knows such an address.
    """
    told = tuple(each for each in sorted(os.environ.items()) if each[0].startswith(STORE))
    try:
        engine, root = _engine(address, os.getpid(), told)
    except (ValueError, ImportError) as error:
        raise StorageFailed(f"archive {address} cannot be reached: {error}. {KEPT}") from None
    return Objects(engine, root.rstrip("/"), address.rstrip("/"), scratch)


@cache
def _engine(address: str, process: int, told: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    """Return what reaches a store, one a process: S3's client takes 0.3 CPU s to make.

    What another machine wrote a moment ago has to be seen: no listing is kept.
    """
    del process, told  # a fork has no use of its parent's, nor has who is told another place
    engine: tuple[Any, str] = url_to_fs(address, skip_instance_cache=True, use_listings_cache=False)
    return engine


@dataclass(frozen=True)
class Objects:
    """All objects below an address."""

    engine: Any
    root: str
    address: str
    scratch: Path
    apart: bool = True
    looked: dict[str, float] = field(default_factory=dict)

    def where(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self.address}/{name}"

    def get(self, name: str) -> bytes:
        """Read a file; raise FileNotFoundError where there is none."""
        with self._reached(name):
            return self._read(self._at(name))

    def each(self, names: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """Let some be on their way while the first of them is used."""
        waiting = deque[Future[bytes]]()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for name in names:
                waiting.append(threads.submit(self.get, name))
                if len(waiting) == AT_ONCE:
                    yield waiting.popleft().result
            while waiting:
                yield waiting.popleft().result

    def put(self, name: str, content: bytes) -> None:
        """Write a file; it is there when this returns, or StorageFailed is raised."""
        with self._written(name):
            self.engine.pipe_file(self._at(name), content)

    def create(self, name: str, content: bytes) -> None:
        """Write a file where there is none, in one step where the store can (If-None-Match).

        Where it cannot, the caller's lock has to do. An answer that was lost is told by what is
        there: it says the same.
        """
        try:
            self.engine.pipe_file(self._at(name), content, mode="create")
        except Exception as error:  # noqa: BLE001 each engine has errors of its own
            there = self._content(name)
            if there is None and getattr(error, "errno", None) == ENOSYS:
                self.put(name, content)
            elif there is None:
                raise self._away(name, error) from None
            elif there != content:
                raise FileExistsError(self.where(name)) from None

    def has(self, name: str) -> bool:
        """Ask whether there is such a file."""
        with self._reached(name):
            return bool(self.engine.exists(self._at(name)))

    def lately(self, name: str) -> bool:
        """Ask once in a while: what is written then settles before anybody goes on."""
        now = SYSTEM.monotonic()  # before the store looks, or a look would be older than it seems
        if now - self.looked.get(name, -LATELY) < LATELY:
            return False
        there = self.has(name)
        if not there:
            self.looked.clear()  # of names that count upwards only the next one matters
            self.looked[name] = now
        return there

    def settle(self) -> None:
        """Wait as long as a look lasts, on whatever machine."""
        Event().wait(LATELY)

    def sizes(self, folder: str) -> dict[str, int]:
        """List all files below a folder."""
        with self._reached(folder):
            try:
                found = self.engine.find(self._at(folder), detail=True)
            except FileNotFoundError:
                return {}
        skip = len(self.root) + 1
        return {name[skip:]: each["size"] or 0 for name, each in sorted(found.items())}

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder: what the names of its files begin with."""
        skip = len(folder) + 1
        return sorted({name[skip:].split("/")[0] for name in self.sizes(folder)})

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, a thousand a request where the store can."""
        paths = [self._at(name) for name in names]
        if paths:
            with self._written(folder := paths[0].removeprefix(f"{self.root}/")):
                try:
                    self.engine.rm(paths)
                except FileNotFoundError:
                    self._one_by_one(paths)
            self.looked.pop(folder, None)

    def _one_by_one(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self.engine.exists(path):
                self.engine.rm_file(path)

    def drop(self, folder: str) -> None:
        """Remove all that is in a folder."""
        self.remove(self.sizes(folder))

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """Yield a copy of a file; raise FileNotFoundError where there is none."""
        with TemporaryDirectory(prefix=FETCHED, dir=self.scratch) as folder:
            copy = Path(folder) / name.rsplit("/", 1)[-1]
            with self._reached(name):
                self.engine.get_file(self._at(name), str(copy))
            yield copy

    @contextmanager
    def making(self, folder: str, last: str) -> Iterator[Path]:
        """Yield a folder whose files are sent where the block ends well.

        Until the last of them is there, nobody takes the others for anything.
        """
        with TemporaryDirectory(prefix=FETCHED, dir=self.scratch) as made:
            yield Path(made)
            for file in sorted(Path(made).iterdir(), key=lambda file: (file.name == last, file)):
                self._send(file, f"{folder}/{file.name}")

    def keep(self, file: Path, name: str) -> None:
        """Send a file, then remove it here."""
        self._send(file, name)
        file.unlink()

    def _send(self, file: Path, name: str) -> None:
        with self._written(name):
            self.engine.put_file(str(file), self._at(name))

    def sweep(self) -> None:
        """Remove copies in the work folder; what was not finished in the store is no object."""
        for left in self.scratch.glob(f"{FETCHED}*"):
            rmtree(left)

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _read(self, path: str) -> bytes:
        """Return a file from its beginning: without that S3's client asks for each one's size."""
        content: bytes
        try:
            content = self.engine.cat_file(path, start=0)
        except OSError as error:
            if error.errno != EINVAL:
                raise
            content = self.engine.cat_file(path)  # an empty one has no beginning
        return content

    def _content(self, name: str) -> bytes | None:
        try:
            return self.get(name)
        except FileNotFoundError:
            return None

    @contextmanager
    def _reached(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:  # noqa: BLE001 each engine has errors of its own
            raise self._away(name, error) from None

    @contextmanager
    def _written(self, name: str) -> Iterator[None]:
        """As when reading; but what cannot be written is never just missing (no such bucket)."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 each engine has errors of its own
            raise self._away(name, error) from None

    def _away(self, name: str, error: Exception) -> StorageFailed:
        said = str(error) or type(error).__name__
        return StorageFailed(f"{self.where(name)} cannot be reached: {said}. {KEPT}")
