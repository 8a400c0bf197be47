"""Makes the books of the published version, and publishes them.

Books hold what follows from one version of the warehouse, the mapping, closes of months, and what
finance remembers: facts, in tables. What follows from decisions about breaks is in views over these
facts, so after a decision they are copied and only the table of decisions changes.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import duckdb
from sqlalchemy import select

from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, MemoryRefused, PartnerSyncError
from pipelines.core.text import counted, printable
from pipelines.finance import earlier_books, memory, own_books
from pipelines.finance.approvals import take_over
from pipelines.finance.doubt import of_another_version
from pipelines.finance.inputs import read_inputs
from pipelines.finance.reconcile.basis import Inputs, replace_decisions
from pipelines.finance.reconcile.engine import reconcile
from pipelines.metadata.tables import BooksRow, Close
from pipelines.versions.catalog import comment, read_comments
from pipelines.versions.change import change_versions, require_lock, storage_error
from pipelines.versions.enough_memory import with_enough_memory
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import FORMAT, MAKE_AGAIN, Books, BooksFolder
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version

# Not anew in a copy: its comments stay.
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
        """Return whether books differ at most in decisions about breaks."""
        return self.version == other.version and self.digest == other.digest


@dataclass(frozen=True)
class BooksResult:
    """The published books, None where there are none; `problem` says why no new ones were made."""

    books: Books | None
    is_new: bool = False
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class _Source:
    """What new books are made of: rows of the version alone (no `base`), or a copy of others.

    In the copy, only decisions change; or rows of `changed` connections do.
    """

    base: Books | None = None
    changed: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """What is reconciled, for people."""
        if self.changed is None:
            return "all connections"
        return counted(len(self.changed), "changed connection")

    @property
    def needs_memory(self) -> bool:
        """Whether breaks are found, and not only decided."""
        return self.base is None or self.changed is not None


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
        failure = _as_failure(error)
        made = BooksResult(None, problem=str(failure), remedy=failure.remedy)
    require_lock(stores)
    if made.books is None:
        folder.drop_all()
    for books in folder.every():
        if books != made.books:
            folder.drop(books)
    return made


def try_books(stores: Stores) -> BooksResult:
    """Do so; where that fails, log and return why: the version is published all the same."""
    try:
        return _make_in_two_tries(stores)
    except Exception as error:  # noqa: BLE001 - a defect of finance must not hold back the data
        failure = _as_failure(error)
    stop.raise_if_requested()
    logger.warning("%s %s", failure, failure.remedy)
    books = None
    with suppress(PartnerSyncError):
        books = BooksFolder(stores.warehouse).published()
    return BooksResult(books, problem=str(failure), remedy=failure.remedy)


def _as_failure(error: Exception) -> PartnerSyncError:
    """Return an error as one for people; an unexpected one is a defect."""
    if isinstance(error, PartnerSyncError):
        return error
    return PartnerSyncError(
        f"The books cannot be made: unexpected {type(error).__name__}: {printable(error)}.",
        "This is a defect of partner-sync. Report it with this message.",
    )


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


def wanted(version: Version, inputs: Inputs) -> BooksState:
    """Return what books of a version with these inputs would be of."""
    return BooksState(version.number, inputs.digest, inputs.decisions_digest)


def state_of(stores: Stores, books: Books | None) -> BooksState | None:
    """Return what books are of; None for none, and for some that cannot be read."""
    if books is None:
        return None
    with (
        suppress(PartnerSyncError, duckdb.Error),
        BooksFolder(stores.warehouse).open_alone(books) as db,
    ):
        ((version, digest, decisions),) = db.execute(ABOUT).fetchall()
        return BooksState(version, digest, decisions)
    return None


def _whole_state(stores: Stores, books: Books | None) -> BooksState | None:
    """Return what books are of; None for some of which a part cannot be read."""
    try:
        if books is not None:
            BooksFolder(stores.warehouse).verify(books)
    except PartnerSyncError as error:
        logger.warning("%s They are made again.", error)
        return None
    return state_of(stores, books)


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
        return f"The books {books} do not show the newest decisions about breaks."
    return ""


def _make(stores: Stores, *, again: bool) -> BooksResult:
    version = stores.warehouse.published()
    if version is None:
        return BooksResult(None)
    folder = BooksFolder(stores.warehouse)
    # What is remembered counts up to the published version, which a rollback may have moved.
    memory.settle(stores)
    inputs = read_inputs(stores)
    published = folder.published()
    state = None if again else _whole_state(stores, published)
    aim = wanted(version, inputs)
    if published and state == aim and not own_books.have_changed(stores, published, inputs):
        # A killed process may have left older ones.
        _drop_older(stores, folder, published)
        return BooksResult(published)
    # The books before stay: they say more than empty ones.
    if inputs.mapping_text is None:
        raise ConfigurationError(inputs.problem)
    source = _Source()
    if published and state and state != aim:
        source = _find_source(stores, published, (state, aim), own_books.connections(inputs))
    if source.needs_memory:
        inputs = _with_memory(stores, inputs)

    def write(stores: Stores) -> tuple[Books, memory.NewMemory]:
        try:
            return _write(stores, version, inputs, source)
        except earlier_books.BooksDiffer as why:
            logger.info("Books of version %s: %s.", version.number, why)
            return _write(stores, version, inputs, _Source())

    books, new = with_enough_memory(stores, write)
    require_lock(stores)
    memory.record(stores, books, new)
    stop.raise_if_requested()
    require_lock(stores)
    folder.link(books)
    _drop_older(stores, folder, books)
    return BooksResult(books, is_new=True)


def _with_memory(stores: Stores, inputs: Inputs) -> Inputs:
    """Return inputs with what is remembered, and with what own books are read."""
    tables, last_as_of = memory.read(stores)
    own = own_books.read_own_inputs(stores) if own_books.connections(inputs) else None
    return replace(inputs, memory=tables, last_as_of=last_as_of, own=own)


def _find_source(
    stores: Stores,
    published: Books,
    states: tuple[BooksState, BooksState],
    with_own: frozenset[str],
) -> _Source:
    """Return of what new books are made: as much as possible of the published ones.

    `states` are theirs and that of the new ones. Connections with own books are reconciled again.
    """
    state, aim = states
    # After a decision, books with the same facts are copied: that costs as much as there are
    # breaks, not rows. To reconcile 1,000,000 usage rows again took 36.6 CPU seconds.
    if state.has_facts_of(aim):
        return _Source(published)
    if state.digest != aim.digest:
        return _Source()
    with stores.warehouse.open(aim.version) as db:
        changed = earlier_books.changed_connections(BooksFolder(stores.warehouse), published, db)
    return _Source() if changed is None else _Source(published, changed | with_own)


def _write(
    stores: Stores, version: Version, inputs: Inputs, source: _Source
) -> tuple[Books, memory.NewMemory]:
    """Write books from a source; return what they add to memory. Raises BooksDiffer."""
    base = source.base
    changed = source.changed
    writing = BooksFolder(stores.warehouse).write(version, base, in_part=changed is not None)
    with _explained(stores, version), writing as (books, db):
        about = {
            "version": version.number,
            "number": books.number,
            "format": FORMAT,
            "made_at": stores.clock.utc_now(),
            "digest": inputs.digest,
            "decisions": inputs.decisions_digest,
            "mapping": inputs.mapping_text,
        }
        if not source.needs_memory:
            replace_decisions(db, inputs.decisions)
            new = memory.NewMemory(memory.read_as_of(db))
            _write_about(db, about)
            return books, new
        logger.info("Books of version %s: reconciling %s.", version.number, source.text)
        may_grow = stores.warehouse.memory_limit.larger() is not None
        reconcile(db, replace(inputs, may_grow=may_grow, connections=changed))
        new = memory.find_new(db)
        _write_about(db, about)
        if changed is None:
            # One commit waits for the disk once, not 670 times.
            db.begin()
            comment(db, read_comments("pipelines.versions", "pipelines.finance"))
            db.commit()
        else:
            earlier_books.merge(db, changed)
    return books, new


def _write_about(db: duckdb.DuckDBPyConnection, about: Row) -> None:
    """Write what books are of."""
    db.execute(CREATE_ABOUT)
    db.execute(INSERT_ABOUT, about)


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
