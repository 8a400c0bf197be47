"""Here: versions of the warehouse as DuckDB files, and the symlink that names the published one.

Not here: how a DuckDB file is opened (duckdb_file), when a version is published (publish).

Analysts may keep any file open, for writing even: a version is a new file with a new name, so
nobody waits for them and they keep what they opened.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import NewerFormat, PartnerSyncError, StorageFailed
from pipelines.core.files import storing, sync_file
from pipelines.core.text import printable, quote_text
from pipelines.files.store import IN_FOLDER, FileStore
from pipelines.warehouse.duckdb_file import (
    BUILD,
    DAMAGE,
    DAMAGED,
    PUBLISHED_FILE,
    Totals,
    Written,
    bytes_in_use,
    close,
    connect,
    connect_reader,
    control_totals,
    copied,
    is_locked,
    is_sparse,
    not_opened,
)
from pipelines.warehouse.formats import newest, read_format, upgrade
from pipelines.warehouse.interrupt import ended_by_stop
from pipelines.warehouse.memory_limit import MemoryLimit
from pipelines.warehouse.published_link import PublishedLink

NAME: Final = re.compile(r"v(\d{8,})\.duckdb")
ATTACH_VERSION: Final = "ATTACH {} AS warehouse (READ_ONLY)"
# What DuckDB raises for a table or column that a version of an older format lacks.
MISSING: Final = (duckdb.CatalogException, duckdb.BinderException)


@dataclass(frozen=True)
class Version:
    """One version of the warehouse. Its file is never changed after it is published."""

    number: int
    path: Path
    store: FileStore = field(default=IN_FOLDER, compare=False, repr=False)

    def file(self) -> Path:
        """Return the path of the file. Raises PartnerSyncError where it is lost."""
        if not self.store.get(self.path).is_file():
            raise PartnerSyncError(
                f"Version {self.number} has no file: {self.path} does not exist. Nothing was "
                "changed.",
                DAMAGED,
            )
        return self.path


@dataclass(frozen=True)
class Warehouse:
    """The version files of one home."""

    home: Home
    memory_limit: MemoryLimit = field(default_factory=MemoryLimit.of)
    store: FileStore = IN_FOLDER

    @contextmanager
    def begin(self, base: Version | None, number: int) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open version `number` for writing, a hidden copy of `base`; delete it in the end.

        The copy is upgraded to the format of now. It stays if the block calls `commit`. The caller
        holds the lock `build`. Raises PartnerSyncError, of which UpgradeFailed is one.
        """
        part = self._part(number)
        try:
            with storing(part, BUILD):
                _delete(self.home.versions, f"{part.name}*")
                if base is not None:
                    shutil.copyfile(base.file(), part)
            with connect(part, self.memory_limit) as db, ended_by_stop(db):
                upgrade(db)
                yield db
        finally:
            _delete(self.home.versions, f"{part.name}*")

    def commit(
        self,
        db: duckdb.DuckDBPyConnection,
        number: int,
        *,
        written: Written | None = None,
        rewrite: bool = False,
    ) -> Version:
        """Finish a version: reopen it, compare it with what was written, make it durable, rename.

        Not published yet. If `written` is given, only its tables of schema `history` are compared,
        and amounts only of its connections: DuckDB leaves the blocks of the others as the base has
        them. With `rewrite`, nothing of deleted rows remains in the file. Raises PartnerSyncError
        for other rows, and duckdb.Error for what cannot be written or read.
        """
        version = self.version(number)
        part = self._part(number)
        # By the free space as of the base's last checkpoint, so a rewrite comes one build late.
        is_rewritten = rewrite or is_sparse(db)
        # Reading the history of a million rows twice took 2 CPU seconds: DuckDB unpacks decimals
        # slowly. A rewritten file has no block of the base, whose blocks were compared already.
        compared = None if is_rewritten else written
        totals = control_totals(db, compared)
        close(db, part, is_rewritten=is_rewritten, must_rewrite=rewrite)
        with connect(part, self.memory_limit, read_only=True) as reader:
            totals_read = control_totals(reader, compared)
        _require_equal(version, totals, totals_read)
        with storing(version.path, BUILD):
            part.chmod(PUBLISHED_FILE)
            sync_file(part)
            self.store.put(part, version.path)
        return version

    def link(self, version: Version) -> None:
        """Publish a version. Raises PartnerSyncError, of which Superseded is one."""
        self._link.move(version.file(), BUILD)

    def published(self) -> Version | None:
        """Return the version that the symlink names, whose file may be lost.

        Raises StorageFailed where something else has the symlink's name.
        """
        name = self._link.read()
        return self.version(int(name[1])) if name else None

    def require_published(self) -> Version:
        """Return the version that the symlink names. Raises PartnerSyncError."""
        version = self.published()
        if version is None:
            raise PartnerSyncError(
                "Nothing is published yet. There are no rows to read.", "Run `partner-sync sync`."
            )
        return version

    def versions(self) -> list[Version]:
        """Return the finished versions, oldest first. A folder with the name of one is none."""
        return list(self.sizes())

    def sizes(self) -> dict[Version, int]:
        """Return the finished versions, oldest first, with the sizes of their files in bytes."""
        by_number = {}
        for file, kept in self.store.list(self.home.versions, "v*.duckdb").items():
            name = NAME.fullmatch(file.name)
            if name:
                by_number[int(name[1])] = kept.bytes
        return {self.version(number): by_number[number] for number in sorted(by_number)}

    @contextmanager
    def open(self, number: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a version read-only for the block (None: the published one).

        Raises PartnerSyncError where there is none, NewerFormat, and StorageFailed for a damaged
        file, also where the damage is met only in the block.
        """
        version = self.require_published() if number is None else self.version(number)
        with (
            connect_reader(version.file(), self.memory_limit) as db,
            _checked(db, version),
        ):
            yield db

    @contextmanager
    def attach(self, db: duckdb.DuckDBPyConnection, version: Version) -> Iterator[None]:
        """Attach a version to a connection as `warehouse`, read-only, for the block.

        Raises as `open` does, but not for what is met only in the block: see `explained`.
        """
        file = version.file()
        with ExitStack() as stack:
            try:
                db.execute(ATTACH_VERSION.format(quote_text(str(file))))
            except duckdb.Error as error:
                if not is_locked(error):
                    raise not_opened(file, error) from error
                copy = stack.enter_context(copied(file))
                db.execute(ATTACH_VERSION.format(quote_text(str(copy))))
            db.execute("USE warehouse")
            with _checked(db, version):
                pass
            yield

    @contextmanager
    def explained(self, version: Version, db: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Explain what cannot be read of an attached version in the block. Raises PartnerSyncError.

        The current database may be another one.
        """
        with _reading(version), _older_named(version, read_format(db, "warehouse")):
            yield

    def drop(self, number: int) -> None:
        """Delete the file of a version that is not published. Raises StorageFailed."""
        version = self.version(number)
        with storing(version.path, BUILD):
            self.store.delete(version.path)
            sync_file(self.home.versions)

    def version(self, number: int) -> Version:
        """Return a version by number, whose file may not exist."""
        return Version(number, self.home.versions / f"v{number:08}.duckdb", self.store)

    @property
    def _link(self) -> PublishedLink:
        return PublishedLink(
            self.home.link,
            NAME,
            self.store,
            target="a version",
            nothing="Nothing",
            command='`partner-sync versions rollback --reason "..."`',
        )

    def _part(self, number: int) -> Path:
        return self.home.versions / f".v{number:08}.building"


@contextmanager
def _checked(db: duckdb.DuckDBPyConnection, version: Version) -> Iterator[None]:
    """Check an open version, and explain what cannot be read of it in the block."""
    with _reading(version):
        number_of_format = read_format(db)
        if number_of_format > newest():
            raise NewerFormat(
                f"Version {version.number} has format {number_of_format}, and this "
                f"partner-sync reads formats up to {newest()}: a newer one wrote "
                f"{version.path}. The file was not changed.",
                "Install the newer partner-sync.",
            )
        _require_whole(version, db)
        with _older_named(version, number_of_format):
            yield


@contextmanager
def _reading(version: Version) -> Iterator[None]:
    """Raise StorageFailed for what DuckDB cannot read of a version, or not with its memory."""
    try:
        yield
    except DAMAGE as error:
        raise StorageFailed(
            f"Version {version.number} cannot be read: {printable(error).rstrip('.!')}. "
            f"{version.path} is damaged. Other versions and scan files are not affected.",
            DAMAGED,
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise StorageFailed(
            f"Version {version.number} cannot be read with this memory: {printable(error)}. "
            "Nothing was changed.",
            "Raise memory_limit in settings.toml, then run the command again.",
        ) from error


def _require_whole(version: Version, db: duckdb.DuckDBPyConnection) -> None:
    """Raise StorageFailed for a file that is shorter than its blocks."""
    # DuckDB notices only when it reads a block that is not there: an export of a file that was cut
    # in half ended well, if its blocks were in the first half.
    if version.path.stat().st_size < bytes_in_use(db):
        raise StorageFailed(
            f"Version {version.number} cannot be read: its end is missing. {version.path} is "
            "damaged. Other versions and scan files are not affected.",
            DAMAGED,
        )


@contextmanager
def _older_named(version: Version, number_of_format: int) -> Iterator[None]:
    """Raise PartnerSyncError for what a version of an older format lacks."""
    try:
        yield
    except MISSING as error:
        if number_of_format == newest():
            raise
        raise PartnerSyncError(
            f"Version {version.number} has format {number_of_format} of an older partner-sync "
            f"and lacks what is read here: {printable(error)}. Its rows are not affected.",
            f"Run {BUILD}: it upgrades a copy and publishes it.",
        ) from error


def _require_equal(version: Version, written: Totals, read: Totals) -> None:
    """Raise PartnerSyncError for tables whose rows are not those that were written."""
    names = written.keys() | read.keys()
    tables = {table for table in names if written.get(table) != read.get(table)}
    if tables:
        raise PartnerSyncError(
            f"Version {version.number} differs from what was written, in the rows of "
            f"{', '.join(sorted(tables))}. It is not published. Analysts still see the version "
            "before it.",
            "Check the disk, then run `partner-sync versions build`.",
        )


def _delete(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
