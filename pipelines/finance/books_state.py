"""Here: what books are of (`meta.books`), and whether the published ones are outdated.

Not here: what inputs are (inputs), and how books are made again (books).
"""

import logging
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple

import duckdb

from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.finance.doubt import of_another_version
from pipelines.finance.inputs import read_inputs
from pipelines.finance.reconcile.basis import Inputs
from pipelines.metadata.tables import BooksRow
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import FORMAT, MAKE_AGAIN, Books, BooksFolder
from pipelines.warehouse.version_files import Version

# A copy of other books has the table already, with its comments.
CREATE_ABOUT: Final = """
CREATE TABLE IF NOT EXISTS books.meta.books (
    version INTEGER, number INTEGER, made_at TIMESTAMPTZ, format INTEGER, digest VARCHAR,
    decisions VARCHAR, mapping VARCHAR
);
DELETE FROM books.meta.books;
"""
INSERT_ABOUT: Final = """
INSERT INTO books.meta.books
VALUES ($version, $number, $made_at, $format, $digest, $decisions, $mapping)
"""
ABOUT: Final = """
SELECT books.version, books.digest, books.decisions FROM books.meta.books AS books
"""
logger = logging.getLogger(__name__)


class BooksState(NamedTuple):
    """What books are of: a version, a digest of all inputs but decisions, one of these."""

    version: int
    digest: str
    decisions: str

    def has_facts_of(self, other: "BooksState") -> bool:
        """Return whether books differ at most in decisions."""
        return self.version == other.version and self.digest == other.digest


def wanted(version: Version, inputs: Inputs) -> BooksState:
    """Return what books of a version with these inputs would be of."""
    return BooksState(version.number, inputs.digest, inputs.decisions_digest)


def write_about(
    db: duckdb.DuckDBPyConnection, books: Books, inputs: Inputs, made_at: datetime
) -> None:
    """Write what open books are of."""
    about = {
        "version": books.version,
        "number": books.number,
        "format": FORMAT,
        "made_at": made_at,
        "digest": inputs.digest,
        "decisions": inputs.decisions_digest,
        "mapping": inputs.mapping_text,
    }
    db.execute(CREATE_ABOUT)
    db.execute(INSERT_ABOUT, about)


def state_of(stores: Stores, books: Books | None) -> BooksState | None:
    """Return what books are of; None for none, and for some that cannot be read."""
    if books is not None:
        with suppress(PartnerSyncError, duckdb.Error):
            return _read_state(stores, books)
    return None


def _read_state(stores: Stores, books: Books) -> BooksState:
    with BooksFolder(stores.warehouse).open_alone(books) as db:
        ((version, digest, decisions),) = db.execute(ABOUT).fetchall()
    return BooksState(version, digest, decisions)


def whole_state(stores: Stores, books: Books | None) -> BooksState | None:
    """Return what books are of; None for some that are damaged."""
    if books is not None:
        try:
            _require_as_written(stores, books)
            return _read_state(stores, books)
        except PartnerSyncError as error:
            logger.warning("%s They are made again.", error)
        except duckdb.Error:
            pass
    return None


def require_unchanged(stores: Stores, books: Books) -> None:
    """Raise StorageFailed if books are not as they were written, or cannot be read; NewerFormat."""
    _require_as_written(stores, books)
    with BooksFolder(stores.warehouse).open_alone(books):
        pass  # that they have a newer format


def _require_as_written(stores: Stores, books: Books) -> None:
    folder = BooksFolder(stores.warehouse)
    with stores.metadata.transaction() as session:
        row = session.get(BooksRow, (books.version, books.number))
        written = row.sha256 if row else None
    if written is None:
        # An earlier release wrote them, or the metadata database is older than they are.
        folder.verify(books)
    elif folder.digest(books) != written:
        raise StorageFailed(
            f"The books {books} were changed after they were published: {books.path} has another "
            "digest. The warehouse is not affected.",
            MAKE_AGAIN,
        )


def why_outdated(stores: Stores) -> str:
    """Return why the published books show less than is known, as a sentence; empty: they do not.

    Raises PartnerSyncError.
    """
    version = stores.warehouse.published()
    if version is None:
        return ""
    books = BooksFolder(stores.warehouse).published()
    if books is None:
        return f"There are no books of version {version.number}: nothing is reconciled."
    if books.version != version.number:
        with stores.metadata.transaction() as session:
            about = session.get(BooksRow, (books.version, books.number))
        made_at = about.made_at if about else None
        return of_another_version(books.version, version.number, made_at)
    return _why_other(books, state_of(stores, books), wanted(version, read_inputs(stores)))


def _why_other(books: Books, state: BooksState | None, aim: BooksState) -> str:
    """Return why books of the right version are not of these inputs; empty: they are."""
    if state is None:
        return f"The books {books} cannot be read."
    if state.digest != aim.digest:
        return (
            f"The books {books} were made with another mapping, before a month was closed or "
            "reopened, before a value was erased, or by another release."
        )
    if state != aim:
        return f"The books {books} do not show the newest decisions."
    return ""
