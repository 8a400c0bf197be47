"""Here: what happens in a night, from start to end. The command line and Dagster call these steps.

- `sync` is the whole night: read every list, then `publish`.
- `publish` is what follows the reading: a version, its books, the checks, the report, messages.
- `build` and `rebuild` are the first two steps of it: a version and its books.

Dagster reads each connection in a run of its own, then calls `publish` once for all.

Not here: how a list is read (read), what is done with versions on other days (maintenance).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines import app
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.read import read_connections
from pipelines.app.results import OnProgress, ReadRequest, StreamResult, SyncResult
from pipelines.app.session import AppSession
from pipelines.core import stop
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import printable
from pipelines.finance import memory
from pipelines.finance.books import try_books
from pipelines.finance.report import current_page, read_published, write_report
from pipelines.publish.build import BuildResult
from pipelines.publish.build import build as build_version
from pipelines.publish.build import rebuild as rebuild_version
from pipelines.publish.versions import change_versions

MakeVersion = Callable[[AppSession], BuildResult]


def build(session: AppSession) -> BuildResult:
    """Build a version of all scans that wait, and its books; what keeps these back is a finding.

    Raises PartnerSyncError where no version can be built.
    """
    return _with_books(session, build_version)


def rebuild(session: AppSession) -> BuildResult:
    """Build a version from the archive, and its books. Raises as `build` does."""
    return _with_books(session, rebuild_version)


def _with_books(session: AppSession, make: MakeVersion) -> BuildResult:
    with change_versions(session):
        memory.settle(session)  # what the base remembers is lost once it is upgraded
    built = make(session)
    try_books(session)
    return built


def sync(
    session: AppSession,
    requests: Collection[ReadRequest],
    on_progress: OnProgress,
    make: MakeVersion | None = build,
) -> SyncResult:
    """Read the requested lists, then publish what was read. `make` None: publish nothing.

    A list that fails holds back no other. Raises PartnerSyncError where no version can be built.
    """
    streams = read_connections(session, requests, on_progress)
    stop.raise_if_requested()
    return publish(session, make, streams)


def publish(
    session: AppSession, make: MakeVersion | None = build, streams: Sequence[StreamResult] = ()
) -> SyncResult:
    """Make a version and its books, check both, write the report and tell people.

    What fails once the version is published is in `problems` of the result. Raises
    PartnerSyncError where no version can be built.
    """
    built = make(session) if make else None
    published = current_version(session)
    checks = run_checks(session, published)
    problems = list[PartnerSyncError]()
    page = None
    with _noted(problems, "The report cannot be written"):
        page = _write_report(session, built)
    with _noted(problems, "Findings cannot be sent"):
        if session.settings.notify:
            app.notify.notify_findings(session)
    return SyncResult(streams, built, published, checks, page, problems)


def _write_report(session: AppSession, built: BuildResult | None) -> Path | None:
    """Return the page of the published books, written again where it is older than they are.

    A new version is summed up in a message to finance.
    """
    if built is None or built.version is None:
        return None
    page = current_page(session)
    if page is not None and not built.is_new:
        return page
    figures = read_published(session)
    page = write_report(session, figures)
    if built.is_new and session.settings.notify_summary:
        app.notify.notify_summary(session, figures)
    return page


@contextmanager
def _noted(problems: list[PartnerSyncError], what: str) -> Iterator[None]:
    """Keep a failure of the block: what was published before stays published, and is shown."""
    try:
        yield
    except PartnerSyncError as error:
        problems.append(error)
    except Exception as error:  # noqa: BLE001 - a defect must not hide what was published
        stop.raise_if_requested()
        text = f"{what}: unexpected {type(error).__name__}: {printable(error)}."
        remedy = "This is a defect of partner-sync. Report it with this message."
        problems.append(PartnerSyncError(text, remedy))
