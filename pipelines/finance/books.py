"""Here: the books of the published version are made and published.

Books hold what follows from one version of the warehouse, the mapping, closes of months, and what
finance remembers: facts, in tables. What follows from decisions about breaks is in views over these
facts, so after a decision they are copied and only the table of decisions changes.

Not here: whether books are outdated (books_state), what they rest on (inputs), the statements
(reconcile).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, MemoryRefused, PartnerSyncError, as_failure
from pipelines.core.text import counted, printable
from pipelines.finance import earlier_books, own_books, remembered
from pipelines.finance.approvals import take_over
from pipelines.finance.books_state import BooksState, wanted, whole_state, write_about
from pipelines.finance.inputs import read_inputs
from pipelines.finance.reconcile.basis import Inputs, replace_decisions
from pipelines.finance.reconcile.engine import reconcile
from pipelines.metadata.tables import Close
from pipelines.versions.catalog import comment, read_comments
from pipelines.versions.change import change_versions, require_lock
from pipelines.versions.enough_memory import with_enough_memory
from pipelines.versions.publish import storage_error
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import MAKE_AGAIN, Books, BooksFolder
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version

NOT_MADE: Final = "The books cannot be made"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BooksResult:
    """The published books, None where there are none; `problem` says why no new ones were made."""

    books: Books | None
    is_new: bool = False
    problem: str = ""
    remedy: str = ""


# The new books, and what they add to what is remembered.
Written = tuple[Books, remembered.Additions]


def make_books(stores: Stores, *, again: bool = False) -> BooksResult:
    """Make and publish books of the published version, if the published ones are outdated.

    With `again` also if they are not, as after a file was restored. Raises PartnerSyncError; the
    published books are then untouched.
    """
    for sentence in take_over(stores):
        logger.info("%s", sentence)
    with change_versions(stores):
        return _make(stores, again=again)


def make_only_books(stores: Stores) -> BooksResult:
    """Make books of the published version, then delete all others; the caller holds `build`.

    The others stay published until then. Where no books can be made, there are none afterwards:
    `problem` says why. Raises LockLost, Superseded, StorageFailed.
    """
    folder = BooksFolder(stores.warehouse)
    try:
        made = _make(stores, again=True)
    except Exception as error:  # noqa: BLE001 - a defect of finance must not keep what has to go
        stop.raise_if_requested()
        failure = as_failure(error, NOT_MADE)
        made = BooksResult(None, problem=str(failure), remedy=failure.remedy)
    require_lock(stores)
    if made.books is None:
        folder.drop_all()
    for books in folder.every():
        if books != made.books:
            folder.drop(books)
    return made


def try_books(stores: Stores) -> BooksResult:
    """Make books as `make_books` does; if that fails, log and return why.

    The version stays published.
    """
    try:
        return _make_in_two_tries(stores)
    except Exception as error:  # noqa: BLE001 - a defect of finance must not hold back the data
        failure = as_failure(error, NOT_MADE)
    stop.raise_if_requested()
    logger.warning("%s %s", failure, failure.remedy)
    books = None
    with suppress(PartnerSyncError):
        books = BooksFolder(stores.warehouse).published()
    return BooksResult(books, problem=str(failure), remedy=failure.remedy)


def _make_in_two_tries(stores: Stores) -> BooksResult:
    """Make books; once more after a failure that may pass, as that of a session that was ended.

    The run that has published their version succeeds, so nobody launches it again.
    """
    try:
        return make_books(stores)
    except PartnerSyncError as error:
        stop.raise_if_requested()
        if not error.may_pass:
            raise
        logger.warning("%s The books are made again.", error)
    return make_books(stores)


def _make(stores: Stores, *, again: bool) -> BooksResult:
    version = stores.warehouse.published()
    if version is None:
        return BooksResult(None)
    folder = BooksFolder(stores.warehouse)
    # What is remembered counts up to the published version, which a rollback may have moved.
    remembered.follow_published(stores)
    inputs = read_inputs(stores)
    published = folder.published()
    state = None if again else whole_state(stores, published)
    aim = wanted(version, inputs)
    if published and state == aim and not own_books.have_changed(stores, published, inputs):
        # A killed process may have left older ones.
        _drop_older(stores, folder, published)
        return BooksResult(published)
    # The books before stay: they say more than empty ones.
    if inputs.mapping_text is None:
        raise ConfigurationError(inputs.problem)
    write = _choose_writing(stores, version, inputs, published, state)
    books, additions = with_enough_memory(stores, write)
    _publish(stores, books, additions)
    return BooksResult(books, is_new=True)


def _choose_writing(
    stores: Stores,
    version: Version,
    inputs: Inputs,
    published: Books | None,
    state: BooksState | None,
) -> Callable[[Stores], Written]:
    """Return how new books are written: with as much as possible of the published ones.

    `state` is what these are of, None where they are made again, or cannot be read. Connections
    with own books are reconciled again.
    """
    aim = wanted(version, inputs)
    from_nothing = partial(_from_nothing, version=version, inputs=inputs)
    # Where nothing else differs, own books do.
    if published is None or state is None or state == aim:
        return from_nothing
    # After a decision, books with the same facts are copied: that costs as much as there are
    # breaks, not rows. To reconcile 1,000,000 usage rows again took 36.6 CPU seconds.
    if state.has_facts_of(aim):
        return partial(_with_other_decisions, version=version, inputs=inputs, earlier=published)
    if state.digest != aim.digest:
        return from_nothing
    with stores.warehouse.open(version.number) as db:
        changed = earlier_books.changed_connections(BooksFolder(stores.warehouse), published, db)
    if changed is None:
        return from_nothing
    inputs = replace(inputs, connections=changed | own_books.connections(inputs))
    return partial(_with_changed_connections, version=version, inputs=inputs, earlier=published)


def _from_nothing(stores: Stores, version: Version, inputs: Inputs) -> Written:
    """Write books of rows of the version alone."""
    writing = BooksFolder(stores.warehouse).write(version)
    with _explained(stores, version), writing as (books, db):
        logger.info("Books of version %s: reconciling all connections.", version.number)
        additions = _reconcile(stores, db, books, inputs)
        # One commit waits for the disk once, not 670 times.
        db.begin()
        comment(db, read_comments("pipelines.versions", "pipelines.finance"))
        db.commit()
    return books, additions


def _with_other_decisions(
    stores: Stores, version: Version, inputs: Inputs, earlier: Books
) -> Written:
    """Write a copy of books, in which only decisions are others."""
    writing = BooksFolder(stores.warehouse).write(version, earlier)
    with _explained(stores, version), writing as (books, db):
        replace_decisions(db, inputs.decisions)
        additions = remembered.Additions(remembered.read_as_of(db))
        write_about(db, books, inputs, stores.clock.utc_now())
    return books, additions


def _with_changed_connections(
    stores: Stores, version: Version, inputs: Inputs, earlier: Books
) -> Written:
    """Write a copy of books, in which rows of the connections of `inputs` are others."""
    changed = inputs.connections or frozenset()
    writing = BooksFolder(stores.warehouse).write(version, earlier, in_part=True)
    try:
        with _explained(stores, version), writing as (books, db):
            what = counted(len(changed), "changed connection")
            logger.info("Books of version %s: reconciling %s.", version.number, what)
            additions = _reconcile(stores, db, books, inputs)
            earlier_books.merge(db, changed)
    except earlier_books.BooksDiffer as why:
        logger.info("Books of version %s: %s.", version.number, why)
        return _from_nothing(stores, version, replace(inputs, connections=None))
    return books, additions


def _reconcile(
    stores: Stores, db: duckdb.DuckDBPyConnection, books: Books, inputs: Inputs
) -> remembered.Additions:
    """Compare usage with billing in open books; return what they add to what is remembered."""
    tables, last_as_of = remembered.read(stores)
    inputs = replace(
        inputs,
        remembered=tables,
        last_as_of=last_as_of,
        own=own_books.read_own_inputs(stores) if own_books.connections(inputs) else None,
        may_grow=stores.warehouse.memory_limit.larger() is not None,
    )
    reconcile(db, inputs)
    additions = remembered.find_new(db)
    write_about(db, books, inputs, stores.clock.utc_now())
    return additions


def _publish(stores: Stores, books: Books, additions: remembered.Additions) -> None:
    """Record what books add to what is remembered, link them, then delete older ones."""
    folder = BooksFolder(stores.warehouse)
    require_lock(stores)
    remembered.record(stores, books, additions)
    stop.raise_if_requested()
    require_lock(stores)
    folder.link(books)
    _drop_older(stores, folder, books)


@contextmanager
def _explained(stores: Stores, version: Version) -> Iterator[None]:
    """Raise PartnerSyncError for what DuckDB or the disk refuses."""
    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as error:
        stop.raise_if_requested()
        if is_memory_refused(error):
            raise MemoryRefused(
                f"The books of version {version.number} cannot be made: DuckDB needs more memory "
                f"than it may use (memory_limit, now {stores.warehouse.memory_limit.text}). The "
                "books before them stay published.",
                "Set a larger memory_limit in settings.toml, then run `partner-sync reconcile`.",
            ) from error
        raise PartnerSyncError(
            f"The books of version {version.number} cannot be made: "
            f"{printable(storage_error(error) or error)}. The books before them stay published.",
            f"Make room on the disk if that is the reason. {MAKE_AGAIN}",
        ) from error


def _drop_older(stores: Stores, folder: BooksFolder, published: Books) -> None:
    """Delete books, but for the newest of each version that is kept, and of the last close."""
    closes = (
        select(Close.version)
        .filter_by(reopened_at=None, state="closed")
        .order_by(Close.closed_at.desc())
    )
    with stores.metadata.transaction() as session:
        closed = session.scalar(closes.limit(1))
    kept = {version.number for version in stores.warehouse.versions()} | {closed}
    every = folder.every()
    newest = {books.version: books for books in every}
    for books in every:
        is_kept = books.version in kept and books == newest[books.version]
        if not is_kept and books != published:
            folder.drop(books)
