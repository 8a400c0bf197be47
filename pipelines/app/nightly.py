"""Here: what happens in a night, from start to end. The command line and Dagster call these steps.

- `sync` is the whole night: read every list, then `publish`.
- `publish` is what follows the reading: a version, its books, the checks, the report, messages.
- `build` and `rebuild` are the first two steps of it: a version and its books.

Dagster reads groups of connections in runs of their own, then calls `publish` once for all.

Not here: how a list is read (read), what is done with versions on other days (maintenance).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines import app
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.read import read_all
from pipelines.app.results import OnProgress, ReadRequest, StreamResult, SyncResult
from pipelines.app.session import AppSession
from pipelines.core import loop, stop
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import printable
from pipelines.finance import memory
from pipelines.finance.books import try_books
from pipelines.finance.report import current_page, read_published, write_report
from pipelines.load.load import LoadResult
from pipelines.publish.build import BuildResult
from pipelines.publish.build import build as build_version
from pipelines.publish.build import rebuild as rebuild_version
from pipelines.publish.versions import change_versions, drop_version
from pipelines.warehouse.books import version_of_published_books

MakeVersion = Callable[[AppSession], BuildResult]
MOST_BUILDING = 0.1  # share of the time, while other connections are read
logger = logging.getLogger(__name__)


def build(session: AppSession) -> BuildResult:
    """Build a version of all scans that wait, and its books; what keeps these back is a finding.

    Raises PartnerSyncError where no version can be built.
    """
    return _with_books(session, build_version)


def rebuild(session: AppSession) -> BuildResult:
    """Build a version from the archive, and its books. Raises as `build` does."""
    return _with_books(session, rebuild_version)


def _with_books(session: AppSession, make: MakeVersion) -> BuildResult:
    problems = list[PartnerSyncError]()
    what = "What versions remember of breaks cannot be taken over"
    # Before a base of 0.2.0 is upgraded, which drops it. If that fails, rows are published all the
    # same: the books take it over from an older version that is kept.
    with _noted(problems, what), change_versions(session):
        memory.settle(session)
    for problem in problems:
        logger.warning("%s %s", problem, problem.remedy)
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

    A list that fails holds back no other, and one that takes long not for long: see
    `publish_minutes`. Raises PartnerSyncError where no version can be built.
    """
    stop.raise_if_requested()
    streams, early = loop.run(_read(session, requests, on_progress, make))
    stop.raise_if_requested()
    return publish(session, make, streams, early)


async def _read(
    session: AppSession,
    requests: Collection[ReadRequest],
    on_progress: OnProgress,
    make: MakeVersion | None,
) -> tuple[list[StreamResult], list[BuildResult]]:
    """Return what was read, and the versions that were published meanwhile."""
    reading = asyncio.create_task(read_all(session, requests, on_progress))
    early = list[BuildResult]()
    try:
        if make is not None and len(requests) > 1:
            await _publish_meanwhile(session, make, reading, early)
        return await reading, early
    finally:
        # It does nothing where the reading has ended.
        reading.cancel()
        # Until then, the runs record how they ended.
        await asyncio.wait([reading])


async def _publish_meanwhile(
    session: AppSession,
    make: MakeVersion,
    reading: asyncio.Task[list[StreamResult]],
    early: list[BuildResult],
) -> None:
    """Publish what is read every `publish_minutes`, until the reading has ended.

    Building takes a tenth of the time at most, and each of these versions replaces the one before:
    they take no place of those that `keep_versions` keeps for a rollback.
    """
    pause = session.settings.publish_minutes * 60
    while True:
        done, _pending = await asyncio.wait([reading], timeout=pause)
        if done:
            return
        began = session.clock.monotonic()
        try:
            # In a thread: the requests of the others go on.
            built = await asyncio.to_thread(make, session)
        except PartnerSyncError as error:
            logger.warning("%s %s", error, error.remedy)
        else:
            if built.is_new:
                _drop_previous(session, early)
            early.append(built)
        pause = max(pause, (session.clock.monotonic() - began) / MOST_BUILDING)


def _drop_previous(session: AppSession, early: Sequence[BuildResult]) -> None:
    """Delete the last version that this night published, for which a newer one is there now."""
    versions = [built.version for built in early if built.is_new and built.version is not None]
    if not versions:
        return
    last = versions[-1]
    # Books that could not be made since are of an earlier version, which they need.
    if last.number != version_of_published_books(session.warehouse):
        with change_versions(session):
            drop_version(session, last.number)


def _together(early: Sequence[BuildResult], last: BuildResult) -> BuildResult:
    """Return what the builds of a night did, as if it were one."""
    builds = [*early, last]
    failed = dict[str, str]()
    results = list[LoadResult]()
    for built in builds:
        results += built.results
        failed |= built.failed
    is_new = any(built.is_new for built in builds)
    return BuildResult(last.version, is_new, tuple(results), failed)


def publish(
    session: AppSession,
    make: MakeVersion | None = build,
    streams: Sequence[StreamResult] = (),
    early: Sequence[BuildResult] = (),
) -> SyncResult:
    """Make a version and its books, check both, write the report and tell people.

    `early` are builds of the same night. What fails once the version is published is in `problems`
    of the result. Raises PartnerSyncError where no version can be built.
    """
    built = None
    if make is not None:
        built = make(session)
        if built.is_new:
            _drop_previous(session, early)
        built = _together(early, built)
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
