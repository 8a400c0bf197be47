"""Versions of the warehouse as DuckDB files, and the symlink that names the published one.

Analysts may keep any file open, for writing even: a version is a new file with a new name, so
nobody waits for them and they keep what they opened.
"""

import fcntl
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.config.home import Home
from pipelines.core.errors import LockHeld, NewerFormat, PartnerSyncError, StorageFailed
from pipelines.core.files import durable_rename, storing, swap_symlink, sync_file
from pipelines.core.text import printable, quote_identifier, quote_text
from pipelines.warehouse.formats import newest, read_format, upgrade
from pipelines.warehouse.interrupt import ended_by_stop
from pipelines.warehouse.memory import MemoryLimit

PUBLISHED_FILE: Final = 0o444
BUILD: Final = "`partner-sync versions build`"  # goes on where a disk was full
NAME: Final = re.compile(r"v(\d{8,})\.duckdb")

SETTINGS: Final[dict[str, Any]] = {
    "threads": 1,  # a second thread costs 40 % more CPU seconds on lists of this size
    "storage_compatibility_version": "v1.5.0",  # every DuckDB from 1.5 on can read it
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a variable of ours is no table
}
ATTACH_VERSION: Final = "ATTACH {} AS warehouse (READ_ONLY)"
LOCKED: Final = "Could not set lock"  # what DuckDB says; it has no error class for it
FREE_SHARE: Final = 3  # rewrite from one third free on
SMALLEST_BLOCKS: Final = 64  # 16 MB: below that there is nothing to gain
BLOCKS = """
SELECT size.total_blocks, size.free_blocks, size.block_size
FROM pragma_database_size() AS size
WHERE size.database_name = current_database()
"""
# Of records: our own columns, which hold key and digest, and the amounts. Reading all columns twice
# would cost 1.5 CPU seconds for a million rows.
TABLES = """
SELECT
    columns.schema_name,
    columns.table_name,
    list(columns.column_name ORDER BY columns.column_index),
    list(columns.column_name ORDER BY columns.column_index) FILTER (
        starts_with(columns.column_name, '_') OR starts_with(columns.data_type, 'DECIMAL')
    )
FROM duckdb_columns() AS columns
SEMI JOIN duckdb_tables() AS tables USING (database_oid, table_oid)
WHERE columns.database_name = current_database()
GROUP BY ALL
"""
# The hash reads every value: a count alone is known without reading a block.
TOTALS = "SELECT count(*), bit_xor(hash({columns})) FROM {table}"
# What DuckDB raises for a block that is not what was written, or is not there.
DAMAGE: Final = (
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.FatalException,
    duckdb.InternalException,
)
# What it raises for a table or column that a version of an older format lacks.
MISSING: Final = (duckdb.CatalogException, duckdb.BinderException)
DAMAGED: Final = (
    "Run `partner-sync versions rebuild`, which sends no request, or `partner-sync versions "
    'rollback --reason "..."`, which publishes older rows.'
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Version:
    """One version of the warehouse. Its file is never changed after it is published."""

    number: int
    path: Path

    def file(self) -> Path:
        """Return the path of the file. Raises PartnerSyncError where it is lost."""
        if not self.path.is_file():
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
            with _connect(part, self.memory_limit) as db, ended_by_stop(db):
                upgrade(db)
                yield db
        finally:
            _delete(self.home.versions, f"{part.name}*")

    def commit(
        self,
        db: duckdb.DuckDBPyConnection,
        number: int,
        *,
        written: Collection[str] | None = None,
        rewrite: bool = False,
    ) -> Version:
        """Finish a version: reopen it, compare it with what was written, make it durable, rename.

        Not published yet. Of schema `history`, only the tables in `written` are compared, if it is
        given: DuckDB leaves the blocks of the others as the base has them. With `rewrite`, nothing
        of deleted rows remains in the file. Raises PartnerSyncError for other rows, and
        duckdb.Error for what cannot be written or read.
        """
        version, part = self.version(number), self._part(number)
        is_rewritten = rewrite or _is_sparse(db)
        compared = None if is_rewritten else written
        before = _control_totals(db, compared)
        _close(db, part, is_rewritten=is_rewritten, must_rewrite=rewrite)
        with _connect(part, self.memory_limit, read_only=True) as reader:
            tables = {
                table for table, _ in before.items() ^ _control_totals(reader, compared).items()
            }
        if tables:
            raise PartnerSyncError(
                f"Version {number} differs from what was written, in the rows of "
                f"{', '.join(sorted(tables))}. It is not published. Analysts still see the version "
                "before it.",
                "Check the disk, then run `partner-sync versions build`.",
            )
        with storing(version.path, BUILD):
            part.chmod(PUBLISHED_FILE)
            sync_file(part)
            durable_rename(part, version.path)
        return version

    def publish(self, version: Version) -> None:
        """Point the symlink to a version. Raises PartnerSyncError."""
        target = version.file().relative_to(self.home.root)
        self.published()  # refuses to overwrite a file that is not our symlink
        with storing(self.home.link, BUILD):
            swap_symlink(self.home.link, str(target))

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
                f"{self.home.link} is not a symlink to a version. It was not changed. Nothing "
                "can be published until it is moved.",
                f"Move {self.home.link} away, then run `partner-sync versions rollback "
                '--reason "..."`.',
            )
        return self.version(int(found[1]))

    def require_published(self) -> Version:
        """Return the version that the symlink names. Raises PartnerSyncError."""
        if version := self.published():
            return version
        raise PartnerSyncError(
            "Nothing is published yet. There are no rows to read.", "Run `partner-sync sync`."
        )

    def versions(self) -> list[Version]:
        """Return the finished versions, oldest first. A folder with the name of one is none."""
        files = [file for file in self.home.versions.glob("v*.duckdb") if file.is_file()]
        found = (NAME.fullmatch(file.name) for file in files)
        return [self.version(number) for number in sorted(int(name[1]) for name in found if name)]

    @contextmanager
    def open(self, number: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a version read-only for the block (None: the published one).

        Raises PartnerSyncError where there is none, NewerFormat, and StorageFailed for a damaged
        file, also where the damage is met only in the block.
        """
        version = self.require_published() if number is None else self.version(number)
        with self._reader(version) as db, self._checked(db, version):
            yield db

    @contextmanager
    def attach(self, db: duckdb.DuckDBPyConnection, version: Version) -> Iterator[None]:
        """Attach a version to a connection as `warehouse`, read-only, for the block.

        Raises as `open` does, but not for what is met only in the block: see `explained`.
        """
        file = version.file()
        with ExitStack() as held:
            try:
                db.execute(ATTACH_VERSION.format(quote_text(str(file))))
            except duckdb.Error as error:
                if LOCKED not in str(error):
                    raise _not_opened(file, error) from error
                copy = held.enter_context(_copied(file))
                db.execute(ATTACH_VERSION.format(quote_text(str(copy))))
            db.execute("USE warehouse")
            with self._checked(db, version):
                pass
            yield

    @contextmanager
    def explained(self, version: Version, db: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Explain what cannot be read of an attached version in the block. Raises PartnerSyncError.

        The current database may be another one.
        """
        with _reading(version), _older_named(version, read_format(db, "warehouse")):
            yield

    @contextmanager
    def _checked(self, db: duckdb.DuckDBPyConnection, version: Version) -> Iterator[None]:
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

    def _reader(self, version: Version) -> duckdb.DuckDBPyConnection:
        """Open a version read-only. Raises PartnerSyncError.

        Opens a private copy where the file cannot be shared: another process has it open for
        writing, or this one with other settings.
        """
        file = version.file()
        with suppress(LockHeld):
            return _connect(file, self.memory_limit, read_only=True)
        with _copied(file) as copy:
            return _connect(copy, self.memory_limit, read_only=True)  # goes when closed

    def drop(self, number: int) -> None:
        """Delete the file of a version that is not published. Raises StorageFailed."""
        version = self.version(number)
        with storing(version.path, BUILD):
            version.path.unlink(missing_ok=True)
            sync_file(self.home.versions)

    def version(self, number: int) -> Version:
        """Return a version by number, whose file may not exist."""
        return Version(number, self.home.versions / f"v{number:08}.duckdb")

    def _part(self, number: int) -> Path:
        return self.home.versions / f".v{number:08}.building"


@contextmanager
def _copied(file: Path) -> Iterator[Path]:
    """Yield a private copy beside a file, and delete its name at the end. Raises StorageFailed.

    This process holds it: a build deletes only the copies of killed readers.
    """
    with (
        storing(file.parent, BUILD),
        tempfile.NamedTemporaryFile(dir=file.parent, prefix=".v-copy-") as copy,
    ):
        fcntl.flock(copy, fcntl.LOCK_SH)
        shutil.copyfile(file, copy.name)
        yield Path(copy.name)


def fetch_rows(db: duckdb.DuckDBPyConnection, query: str, bound: Row | None = None) -> list[Row]:
    """Return the rows of a query by column."""
    found = db.execute(query, bound)
    names = [name for name, *_ in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _connect(
    file: Path, memory_limit: MemoryLimit, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file; create it where it does not exist and may be written.

    What does not fit into memory goes to a folder beside a file that is written. Readers have none:
    the names of two in one folder would collide. Raises LockHeld where another process writes the
    file, or this one opened it with other settings, StorageFailed where it is damaged or refused.
    """
    spill = "" if read_only else f"{file}.spill"
    settings = {**SETTINGS, "memory_limit": memory_limit.text, "temp_directory": spill}
    try:
        database = duckdb.connect(file, read_only=read_only, config=settings)
    except duckdb.Error as error:
        if LOCKED in str(error) or isinstance(error, duckdb.ConnectionException):
            raise LockHeld(f"{file} cannot be shared: {printable(error)}.") from error
        raise _not_opened(file, error) from error
    database.execute("SET TimeZone = 'UTC'")
    return database


def _not_opened(file: Path, error: duckdb.Error) -> StorageFailed:
    return StorageFailed(
        f"{file} cannot be opened: {printable(error).rstrip('.!')}. No other file is affected.",
        f"If the file is damaged: {DAMAGED}",
    )


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
    """Raise StorageFailed for a file that is shorter than its blocks.

    DuckDB notices only when it reads a block that is not there. It does not write free ones at the
    end.
    """
    total, free, size = db.execute(BLOCKS).fetchall()[0]
    if version.path.stat().st_size < (total - free) * size:
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


def _is_sparse(database: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a third of a file is free as of its last checkpoint, and it is not small."""
    total, free, _size = database.execute(BLOCKS).fetchall()[0]
    return bool(total >= SMALLEST_BLOCKS and free * FREE_SHARE >= total)


def _close(
    database: duckdb.DuckDBPyConnection, file: Path, *, is_rewritten: bool, must_rewrite: bool
) -> None:
    """Close a file that was written, and rewrite it without free blocks, where that is wanted.

    With `must_rewrite`, what fails raises duckdb.Error; otherwise the file stays where there
    is no room for another. Tables, views, macros and comments stay.
    """
    dense = file.with_name(f"{file.name}.dense")
    path = str(dense).replace("'", "''")
    with database:
        database.execute("CHECKPOINT")
        if is_rewritten:
            ((name,),) = database.execute("SELECT current_database()").fetchall()
            copy = f"COPY FROM DATABASE {quote_identifier(name)} TO dense"
            with nullcontext() if must_rewrite else suppress(duckdb.Error):
                database.execute(f"ATTACH '{path}' AS dense; {copy}; DETACH dense")
                dense.replace(file)


def _control_totals(
    database: duckdb.DuckDBPyConnection, written: Collection[str] | None
) -> dict[str, tuple[int, int]]:
    """Return rows and a digest of their values, in any order, of tables by `schema.table`.

    Without those of schema `history` that are not in `written`, if it is given.
    """
    totals = {}
    for schema, table, columns, telling in database.execute(TABLES).fetchall():
        if schema == "history" and written is not None and table not in written:
            continue
        query = TOTALS.format(
            columns=", ".join(quote_identifier(column) for column in telling or columns),
            table=f"{quote_identifier(schema)}.{quote_identifier(table)}",
        )
        totals[f"{schema}.{table}"] = database.execute(query).fetchall()[0]
    return totals


def _delete(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
