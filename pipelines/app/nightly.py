"""What is published: a version of all scans that wait, then its books.

The command line and Dagster call these functions, and decide nothing.
"""

from collections.abc import Callable

from pipelines.app.session import AppSession
from pipelines.core.errors import PartnerSyncError
from pipelines.finance import memory
from pipelines.finance.books import make_books, try_books
from pipelines.publish import build, erase, versions
from pipelines.publish.build import BuildResult
from pipelines.publish.erase import ErasureRequest
from pipelines.publish.search import SearchResult
from pipelines.warehouse.duckdb_file import Row

__all__ = ["erase_records", "make_books", "publish", "republish", "rollback"]


def publish(session: AppSession) -> BuildResult:
    """Build a version of all scans that wait, and its books; what keeps these back is a finding.

    Raises PartnerSyncError where no version can be built.
    """
    return _with_books(session, build.build)


def republish(session: AppSession) -> BuildResult:
    """Build a version from the archive, and its books. Raises as `publish` does."""
    return _with_books(session, build.rebuild)


def _with_books(session: AppSession, make: Callable[[AppSession], BuildResult]) -> BuildResult:
    with versions.change_versions(session):
        memory.settle(session)  # what the base remembers is lost once it is upgraded
    built = make(session)
    try_books(session)
    return built


def rollback(session: AppSession, number: int | None, reason: str) -> str:
    """Publish an older version, and books of it; return what changed. Raises PartnerSyncError."""
    changed = versions.rollback(session, number, reason)
    books = try_books(session)
    return f"{changed} {books.problem} {books.remedy}".strip()


def erase_records(
    session: AppSession,
    request: ErasureRequest,
    show: Callable[[SearchResult], object],
    confirm: Callable[[], object],
) -> list[Row]:
    """Erase records as `publish.erase` does, and make books without them."""
    with versions.change_versions(session):
        memory.settle(session)
    erased = erase.erase(session, request, show, confirm)
    try:
        make_books(session)
    except PartnerSyncError as error:
        raise PartnerSyncError(
            f"The records are erased, but there are no books: {error}", error.remedy
        ) from error
    return erased
