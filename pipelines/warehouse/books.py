"""Here: the files of the books beside the version files, and the symlink to the published ones.

Not here: what is in them (finance). Books are of one version of the warehouse, whose number their
name begins with. A file is never changed after it has its name. Its views read nothing but itself,
so that it can be copied, renamed and attached under any name.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core.errors import NewerFormat, PartnerSyncError, StorageFailed
from pipelines.core.files import remove, storing, sync_file
from pipelines.core.text import printable, quote_text
from pipelines.warehouse.duckdb_file import DAMAGE, PUBLISHED_FILE, SETTINGS
from pipelines.warehouse.interrupt import ended_by_stop
from pipelines.warehouse.published_link import PublishedLink
from pipelines.warehouse.version_files import Version, Warehouse

FORMAT: Final = 2  # of the books. Those of an older one are made anew, never changed.
NAME: Final = re.compile(r"v(\d{8,})-(\d{4,})\.duckdb")
WHOLE: Final = "whole"  # the name of a copy of earlier books, while a part of new ones is made
RECONCILE: Final = "`partner-sync reconcile`"
MAKE_AGAIN: Final = f"Run {RECONCILE}, which makes them again from the published version."
SCHEMAS: Final = ("reconciliation", "finance", "meta")
READ_FORMAT: Final = "SELECT books.format FROM books.meta.books AS books"
# Of each name that is not qualified, the schema says in which of the two files it is.
PATHS: Final = """
SELECT concat(schemas.database_name, '.', schemas.schema_name)
FROM duckdb_schemas() AS schemas
WHERE schemas.database_name IN ('books', 'warehouse')
    AND schemas.schema_name NOT IN ('pg_catalog', 'information_schema')
ORDER BY schemas.database_name, schemas.schema_name <> 'main', schemas.schema_name
"""
TABLES: Final = """
SELECT concat('books.', tables.schema_name, '.', tables.table_name)
FROM duckdb_tables() AS tables
WHERE tables.database_name = 'books'
"""


@dataclass(frozen=True, order=True)
class Books:
    """One file of books: the `number`-th of a version."""

    version: int
    number: int
    path: Path

    def __str__(self) -> str:
        return f"{self.version}-{self.number}"


class BooksFolder:
    """The books of one home."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._home = warehouse.home
        self._store = warehouse.store

    def every(self) -> list[Books]:
        """Return the books that are there, oldest first."""
        files = self._store.list(self._home.books, "v*.duckdb")
        names = [NAME.fullmatch(file.name) for file in files]
        return sorted(self._named(int(name[1]), int(name[2])) for name in names if name)

    def published(self) -> Books | None:
        """Return the books that the symlink names, whose file may be lost.

        Raises StorageFailed where something else has the symlink's name.
        """
        name = self._link.read()
        return self._named(int(name[1]), int(name[2])) if name else None

    def newest_of(self, version: int) -> Books | None:
        """Return the newest books of a version, if there are any."""
        of_version = [books for books in self.every() if books.version == version]
        return of_version[-1] if of_version else None

    @contextmanager
    def write(
        self, version: Version, base: Books | None = None, *, in_part: bool = False
    ) -> Iterator[tuple[Books, duckdb.DuckDBPyConnection]]:
        """Open new books of a version for writing; after the block, the file has its name.

        They begin as a copy of `base`, or empty and with the version attached. With `in_part`, the
        copy is attached as `whole`, beside empty books in memory, which are not kept. Not published
        yet. The caller holds the lock `build`. Raises PartnerSyncError, and duckdb.Error for what
        cannot be written.
        """
        books = self._next_of(version.number)
        part = books.path.with_name(f".{books.path.stem}.building")
        with storing(books.path, RECONCILE):
            self._home.books.mkdir(mode=0o755, exist_ok=True)
        try:
            _remove_all(part)
            if base is not None:
                with storing(part, RECONCILE):
                    self.copy(base, part)
            with self._database(spill_folder=f"{part}.spill") as db, ExitStack() as stack:
                name = WHOLE if in_part else "books"
                db.execute(f"ATTACH {quote_text(str(part))} AS {name}")
                if in_part:
                    db.execute("ATTACH ':memory:' AS books")
                if base is None or in_part:
                    self._create(db)
                    stack.enter_context(self._warehouse.attach(db, version))
                _set_paths(db)
                yield books, db
                db.execute(f"CHECKPOINT {name}")
            with storing(books.path, RECONCILE):
                part.chmod(PUBLISHED_FILE)
                sync_file(part)
                self._store.put(part, books.path)
        finally:
            _remove_all(part)

    def copy(self, books: Books, file: Path) -> None:
        """Copy books to a file that can be written. Raises OSError, StorageFailed."""
        shutil.copyfile(self._store.get(books.path), file)
        file.chmod(0o600)  # the published books are read-only

    def link(self, books: Books) -> None:
        """Publish books. Raises StorageFailed, Superseded."""
        self._link.move(books.path, RECONCILE)

    def drop(self, books: Books) -> None:
        """Delete books. Raises StorageFailed."""
        with storing(books.path, RECONCILE):
            self._store.delete(books.path)

    def drop_all(self) -> None:
        """Delete all books, of which none is published then. Raises StorageFailed, Superseded."""
        self._link.move(None, RECONCILE)
        for books in self.every():
            self.drop(books)

    @contextmanager
    def open(
        self, books: Books | None, version: Version | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open books with a version (None: theirs) read-only for the block, names joined.

        Without books, the version alone. Raises PartnerSyncError.
        """
        if version is None:
            if books is None:
                raise ValueError("neither books nor a version")
            version = self._warehouse.version(books.version)
        # Names are joined here and not by views in a file: a view that names another file fails
        # where that is not attached, or has another name.
        with self._database() as db, self._warehouse.attach(db, version):
            if books is not None:
                self._attach(db, books)
            _set_paths(db)
            with self._warehouse.explained(version, db), self._blamed(books):
                yield db

    @contextmanager
    def open_alone(self, books: Books) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open books without their version, which may be gone. Raises PartnerSyncError."""
        with self._database() as db:
            self._attach(db, books)
            _set_paths(db)
            yield db

    def digest(self, books: Books) -> str:
        """Return the SHA-256 of the file of books. Raises StorageFailed."""
        self._require_file(books)
        with _explained(books), books.path.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()

    def verify(self, books: Books) -> None:
        """Read books whole. Raises StorageFailed for damaged ones, NewerFormat."""
        with self.open_alone(books) as db, _explained(books):
            for (table,) in db.execute(TABLES).fetchall():
                db.execute(f"SELECT bit_xor(hash(_row)) FROM {table} AS _row").fetchall()

    @contextmanager
    def _blamed(self, books: Books | None) -> Iterator[None]:
        """Where something cannot be read, raise StorageFailed if it is these books."""
        try:
            yield
        except DAMAGE:
            if books is not None:
                self.verify(books)
            raise

    def _next_of(self, version: int) -> Books:
        """Return the books of a version that are to be written."""
        last = self.newest_of(version)
        return self._named(version, last.number + 1 if last else 1)

    def _named(self, version: int, number: int) -> Books:
        return Books(version, number, self._home.books / f"v{version:08}-{number:04}.duckdb")

    @property
    def _link(self) -> PublishedLink:
        return PublishedLink(
            self._home.books_link,
            NAME,
            self._store,
            target="books",
            nothing="No books",
            command=RECONCILE,
        )

    @contextmanager
    def _database(self, spill_folder: str = "") -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a database in memory, to which files are attached.

        What does not fit into memory goes to `spill_folder`; empty: such a query fails.
        """
        settings: dict[str, Any] = {
            **SETTINGS,
            "memory_limit": self._warehouse.memory_limit.text,
            "temp_directory": spill_folder,
        }
        with duckdb.connect(config=settings) as db, ended_by_stop(db):
            db.execute("SET TimeZone = 'UTC'")
            yield db

    @staticmethod
    def _create(db: duckdb.DuckDBPyConnection) -> None:
        for schema in SCHEMAS:
            db.execute(f"CREATE SCHEMA books.{schema}")

    def _require_file(self, books: Books) -> None:
        """Bring the file of books to this machine. Raises StorageFailed where it is lost."""
        if not self._store.get(books.path).is_file():
            raise StorageFailed(
                f"The books {books} have no file: {books.path} does not exist. The warehouse is "
                "not affected.",
                MAKE_AGAIN,
            )

    def _attach(self, db: duckdb.DuckDBPyConnection, books: Books) -> None:
        """Attach books read-only. Raises StorageFailed, NewerFormat."""
        self._require_file(books)
        with _explained(books):
            db.execute(f"ATTACH {quote_text(str(books.path))} AS books (READ_ONLY)")
            ((number,),) = db.execute(READ_FORMAT).fetchall()
        if number > FORMAT:
            raise NewerFormat(
                f"The books {books} have format {number}, and this partner-sync reads formats up "
                f"to {FORMAT}: a newer one wrote {books.path}. The file was not changed.",
                "Install the newer partner-sync.",
            )


def version_of_published_books(warehouse: Warehouse) -> int | None:
    """Return the version that the published books are of, which must be kept."""
    with suppress(PartnerSyncError):
        if books := BooksFolder(warehouse).published():
            return books.version
    return None


@contextmanager
def _explained(books: Books) -> Iterator[None]:
    """Raise StorageFailed for books that cannot be read."""
    try:
        yield
    except (*DAMAGE, duckdb.CatalogException, OSError) as error:
        raise StorageFailed(
            f"The books {books} cannot be read: {printable(error).rstrip('.!')}. {books.path} is "
            "damaged. The warehouse is not affected.",
            MAKE_AGAIN,
        ) from error


def _set_paths(db: duckdb.DuckDBPyConnection) -> None:
    """Let names resolve in both files, by their schemas; new tables are made in the books."""
    paths = [path for (path,) in db.execute(PATHS).fetchall()]
    db.execute(f"SET search_path = {quote_text(','.join(paths))}")


def _remove_all(part: Path) -> None:
    for path in part.parent.glob(f"{part.name}*"):
        remove(path)
