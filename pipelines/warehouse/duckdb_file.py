"""Versions of the warehouse as DuckDB files, and the symlink that names the published one.

Analysts may keep any file open, for writing even: a version is a new file with a new name, so
nobody waits for them and they keep what they opened.
"""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import BuildFailed, LockHeld, StorageFailed, VersionNotFound
from pipelines.core.files import durable_rename, swap_symlink, sync_file, sync_folder
from pipelines.core.text import printable
from pipelines.warehouse.compact import compact, is_sparse
from pipelines.warehouse.connect import connect
from pipelines.warehouse.files import (
    copy_file,
    delete,
    delete_leftovers,
    unfinished_file,
    version_file,
    version_number,
)
from pipelines.warehouse.protocol import Version

PUBLISHED_FILE: Final = 0o444


class DuckDBBuild:
    """A version file that is being written, under a hidden name."""

    def __init__(self, number: int, folder: Path, memory_limit: str) -> None:
        self.number = number
        self._target = version_file(folder, number)
        self._file = unfinished_file(folder, number)
        self._memory_limit = memory_limit
        self.db = connect(self._file, memory_limit)
        if is_sparse(self.db):
            self.db.close()
            compact(self._file, memory_limit)
            self.db = connect(self._file, memory_limit)

    def commit(self, verify: Callable[[duckdb.DuckDBPyConnection], None]) -> Version:
        """Finish the file. Raises BuildFailed, StorageFailed and whatever `verify` raises."""
        try:
            self.db.execute("CHECKPOINT")
            self.db.close()
            with closing(connect(self._file, self._memory_limit, read_only=True)) as reader:
                verify(reader)
            self._file.chmod(PUBLISHED_FILE)
            sync_file(self._file)
            durable_rename(self._file, self._target)
        except duckdb.Error as error:
            raise BuildFailed(
                f"Version {self.number} could not be finished: {printable(error)}. It is not "
                "published. Analysts still see the version before it.",
                "Make room on the disk if it is full, then run `partner-sync versions build`.",
            ) from error
        except OSError as error:
            raise _storage_failed(self._target, error) from error
        return Version(self.number, self._target)

    def abort(self) -> None:
        """Delete the unfinished file."""
        with suppress(duckdb.Error):
            self.db.close()
        for file in self._file.parent.glob(f"{self._file.name}*"):
            delete(file)


@dataclass(frozen=True)
class DuckDBFiles:
    """The version files of one home."""

    home: Home
    memory_limit: str = "128MB"

    def begin(self, base: Version | None, number: int) -> DuckDBBuild:
        """Start a version as a copy of `base`. Raises StorageFailed or VersionNotFound."""
        if base is not None and not base.path.is_file():
            raise _not_found(base.number)
        part = unfinished_file(self.home.versions, number)
        try:
            delete_leftovers(self.home.versions)
            if base is not None:
                copy_file(base.path, part)
            return DuckDBBuild(number, self.home.versions, self.memory_limit)
        except OSError as error:
            delete(part)
            raise _storage_failed(part, error) from error

    def publish(self, version: Version) -> None:
        """Point the symlink to a version. Raises VersionNotFound or StorageFailed."""
        if not version.path.is_file():
            raise _not_found(version.number)
        self.published()  # refuses to overwrite a file that is not our symlink
        try:
            swap_symlink(self.home.link, str(version.path.relative_to(self.home.root)))
        except OSError as error:
            raise _storage_failed(self.home.link, error) from error

    def published(self) -> Version | None:
        """Return the version that the symlink names. Raises StorageFailed for another file."""
        try:
            name = self.home.link.readlink().name
        except FileNotFoundError:
            return None
        except OSError:
            name = ""  # something else has this name
        number = version_number(Path(name))
        if number is None:
            raise StorageFailed(
                f"{self.home.link} is not a symlink to a version. It is left as it is; nothing can "
                "be published in its place.",
                f"Move {self.home.link} away, then run `partner-sync versions rollback`.",
            )
        return Version(number, self._file(number))

    def versions(self) -> list[Version]:
        """Return the finished versions, oldest first."""
        files = self.home.versions.glob("v*.duckdb")
        numbers = sorted(number for file in files if (number := version_number(file)) is not None)
        return [Version(number, self._file(number)) for number in numbers]

    def open(self, number: int | None = None) -> duckdb.DuckDBPyConnection:
        """Open a version read-only; a copy of it while another process has it open for writing."""
        version = self.published() if number is None else Version(number, self._file(number))
        if version is None:
            raise VersionNotFound(
                "Nothing is published yet, so there are no rows to read.",
                "Run `partner-sync sync`.",
            )
        try:
            return connect(version.path, self.memory_limit, read_only=True)
        except LockHeld:
            return self._open_copy(version.path)

    def drop(self, number: int) -> None:
        """Delete a version's file. Raises StorageFailed for the published one."""
        published = self.published()
        if published is not None and published.number == number:
            raise StorageFailed(
                f"Version {number} is published and cannot be deleted.",
                "Run `partner-sync versions rollback` to publish another one first.",
            )
        try:
            self._file(number).unlink(missing_ok=True)
            sync_folder(self.home.versions)
        except OSError as error:
            raise _storage_failed(self._file(number), error) from error

    def _file(self, number: int) -> Path:
        return version_file(self.home.versions, number)

    def _open_copy(self, file: Path) -> duckdb.DuckDBPyConnection:
        """Open a private copy whose name is removed at once: it goes when it is closed."""
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".read-") as part:
            copy = Path(part.name)
            shutil.copyfile(file, copy)
            return connect(copy, self.memory_limit, read_only=True)


def _not_found(number: int) -> VersionNotFound:
    return VersionNotFound(
        f"There is no file of version {number}. Nothing was changed.",
        "Run `partner-sync versions list` to see which versions are kept.",
    )


def _storage_failed(file: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{file} cannot be written: {error.strerror}. Analysts still see the published version.",
        "Make room or correct the permissions, then run `partner-sync versions build`.",
    )
