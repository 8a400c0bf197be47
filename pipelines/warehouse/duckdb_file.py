"""Versions of the warehouse as DuckDB files, and the symlink that names the published one.

Analysts may keep any file open, for writing even: a version is a new file with a new name, so
nobody waits for them and they keep what they opened.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import BuildFailed, LockHeld, StorageFailed, VersionNotFound
from pipelines.core.files import durable_rename, swap_symlink, sync_file
from pipelines.warehouse.database import connect, connect_compact, control_totals

PUBLISHED_FILE: Final = 0o444
NAME: Final = re.compile(r"v(\d{8,})\.duckdb")


@dataclass(frozen=True)
class Version:
    """One version of the warehouse. Its file is never changed after it is published."""

    number: int
    path: Path


@dataclass(frozen=True)
class Build:
    """A version that is being written into a hidden file; `db` is that file, open for writing."""

    version: Version
    file: Path
    db: duckdb.DuckDBPyConnection
    memory_limit: str

    def commit(self) -> Version:
        """Finish the file: reopen it, compare it with what was written, make it durable, rename it.

        Not published yet. Raises BuildFailed for other rows, StorageFailed, and duckdb.Error for
        what cannot be written or read.
        """
        written = control_totals(self.db)
        self.db.execute("CHECKPOINT")
        self.db.close()
        with closing(connect(self.file, self.memory_limit, read_only=True)) as reader:
            tables = {table for table, _ in written.items() ^ control_totals(reader).items()}
        if tables:
            raise BuildFailed(
                f"Version {self.version.number} is not what was written: other rows in "
                f"{', '.join(sorted(tables))}. It is not published. Analysts still see the version "
                "before it.",
                "Check the disk, then run `partner-sync versions build`.",
            )
        with _writing(self.version.path):
            self.file.chmod(PUBLISHED_FILE)
            sync_file(self.file)
            durable_rename(self.file, self.version.path)
        return self.version

    def close(self) -> None:
        """Delete the file, unless it is finished."""
        with suppress(duckdb.Error):
            self.db.close()
        _delete(self.file.parent, f"{self.file.name}*")


@dataclass(frozen=True)
class Warehouse:
    """The version files of one home."""

    home: Home
    memory_limit: str = "128MB"

    def begin(self, base: Version | None, number: int) -> Build:
        """Start version `number` as a copy of `base`. Raises StorageFailed or VersionNotFound.

        Deletes what killed builds left; the caller holds the lock `build`.
        """
        if base is not None:
            _require_file(base)
        part = self.home.versions / f".v{number:08}.building"
        with _writing(part):
            _delete(self.home.versions, ".v*")
            try:
                if base is not None:
                    shutil.copyfile(base.path, part)
            except OSError:
                part.unlink(missing_ok=True)
                raise
        db = connect_compact(part, self.memory_limit)
        return Build(self._version(number), part, db, self.memory_limit)

    def publish(self, version: Version) -> None:
        """Point the symlink to a version. Raises VersionNotFound or StorageFailed."""
        _require_file(version)
        self.published()  # refuses to overwrite a file that is not our symlink
        with _writing(self.home.link):
            swap_symlink(self.home.link, str(version.path.relative_to(self.home.root)))

    def published(self) -> Version | None:
        """Return the version that the symlink names, whose file may be lost.

        Raises StorageFailed where something else has the symlink's name.
        """
        try:
            found = NAME.fullmatch(self.home.link.readlink().name)
        except FileNotFoundError:
            return None
        except OSError:
            found = None
        if found is None:
            raise StorageFailed(
                f"{self.home.link} is not a symlink to a version. It is left as it is; nothing can "
                "be published in its place.",
                f"Move {self.home.link} away, then run `partner-sync versions rollback`.",
            )
        return self._version(int(found[1]))

    def versions(self) -> list[Version]:
        """Return the finished versions, oldest first."""
        found = (NAME.fullmatch(file.name) for file in self.home.versions.glob("v*.duckdb"))
        return [self._version(number) for number in sorted(int(name[1]) for name in found if name)]

    def open(self, number: int | None = None) -> duckdb.DuckDBPyConnection:
        """Open a version read-only (None: the published one).

        Opens a private copy where the file cannot be shared: another process has it open for
        writing, or this one with other settings. Raises VersionNotFound, StorageFailed.
        """
        version = self.published() if number is None else self._version(number)
        if version is None:
            raise VersionNotFound(
                "Nothing is published yet, so there are no rows to read.",
                "Run `partner-sync sync`.",
            )
        _require_file(version)
        with suppress(LockHeld):
            return connect(version.path, self.memory_limit, read_only=True)
        folder = self.home.versions
        with _writing(folder), tempfile.NamedTemporaryFile(dir=folder, prefix=".v-copy-") as copy:
            shutil.copyfile(version.path, copy.name)
            return connect(Path(copy.name), self.memory_limit, read_only=True)  # goes when closed

    def drop(self, number: int) -> None:
        """Delete a version's file. Raises StorageFailed for the published one."""
        version = self._version(number)
        if version == self.published():
            raise StorageFailed(
                f"Version {number} is published and cannot be deleted.",
                "Run `partner-sync versions rollback` to publish another one first.",
            )
        with _writing(version.path):
            version.path.unlink(missing_ok=True)
            sync_file(self.home.versions)

    def _version(self, number: int) -> Version:
        return Version(number, self.home.versions / f"v{number:08}.duckdb")


def _require_file(version: Version) -> None:
    if not version.path.is_file():
        raise VersionNotFound(
            f"Version {version.number} has no file: {version.path} does not exist. Nothing was "
            "changed.",
            "Run `partner-sync versions list`, then `partner-sync versions rollback` to one of it.",
        )


def _delete(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{file} cannot be written: {error.strerror}. Analysts still see the version before.",
            "Make room or correct the permissions, then run `partner-sync versions build`.",
        ) from error
