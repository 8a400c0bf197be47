"""Here: what happens in a night, from start to end. The command line and Dagster call these steps.

- `sync` is the whole night: read every list, then `after_reading`.
- `after_reading` is what follows: a version, its books, the checks, the report, messages.
- `build_with_books` and `rebuild_with_books` are its first two steps: a version and its books.

Dagster reads groups of connections in runs of their own, then calls
`after_reading` once for all.

Not here: how a list is read (read), what is done with versions on other days (maintenance).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipelines import app
from pipelines.app.checkup import current_version, run_checks
from pipelines.app.read import read_all
from pipelines.app.results import OnProgress, ReadRequest, StreamResult, SyncResult
from pipelines.app.session import AppSession
from pipelines.core import loop, stop
from pipelines.core.errors import LockHeld, PartnerSyncError, as_failure
from pipelines.finance import remembered
from pipelines.finance.books import try_books
from pipelines.finance.report import current_page, read_figures_of_books, write_report
from pipelines.load.load import LoadResult
from pipelines.versions.build import BuildResult, build, rebuild
from pipelines.versions.change import change_versions
from pipelines.versions.publish import drop_replaced

MakeVersion = Callable[[AppSession], BuildResult]
MOST_BUILDING = 0.1  # share of the time, while other connections are read
logger = logging.getLogger(__name__)


def build_with_books(session: AppSession, *, early: bool = False) -> BuildResult:
    """Build a version of all scans that wait, and its books; what keeps these back is a finding.

    An early version is replaced by the next one. Raises PartnerSyncError where no version can be
    built.
    """
    return _with_books(session, partial(build, early=early))


def rebuild_with_books(session: AppSession) -> BuildResult:
    """Build a version from the archive, and its books. Raises as `build_with_books` does."""
    return _with_books(session, rebuild)


def _with_books(session: AppSession, make: MakeVersion) -> BuildResult:
    problems = list[PartnerSyncError]()
    what = "What versions remember of breaks cannot be taken over"
    # Before a base of 0.2.0 is upgraded, which drops it. If that fails, rows are published all the
    # same: the books take it over from an older version that is kept.
    with _noted(problems, what), change_versions(session):
        remembered.follow_published(session)
    if any(isinstance(problem, LockHeld) for problem in problems):
        raise problems[0]  # the build would wait for the same lock
    built = make(session)
    try_books(session)
    with _noted(problems, "Versions that are replaced cannot be deleted"):
        drop_replaced(session)
    for problem in problems:
        logger.warning("%s %s", problem, problem.remedy)
    return built


def sync(
    session: AppSession,
    requests: Collection[ReadRequest],
    on_progress: OnProgress,
    *,
    no_build: bool = False,
) -> SyncResult:
    """Read the requested lists, then publish what was read.

    A list that fails holds back no other, and one that takes long not for long: see
    `publish_minutes`. Raises PartnerSyncError where no version can be built.
    """
    streams, early = read(session, requests, on_progress, publish_early=not no_build)
    if no_build:
        return replace(_check_and_tell(session, None), streams=streams)
    result = after_reading(session)
    return replace(result, streams=streams, build=_together(early, result.build))


def read(
    session: AppSession,
    requests: Collection[ReadRequest],
    on_progress: OnProgress,
    *,
    publish_early: bool,
) -> tuple[list[StreamResult], list[BuildResult]]:
    """Read lists of connections as `read_all` does, all at once; return their results.

    With `publish_early`, what is read so far is published every `publish_minutes`; these builds are
    returned, too. Raises KeyboardInterrupt after the runs have recorded it.
    """
    stop.raise_if_requested()
    result = loop.run(_read(session, requests, on_progress, publish_early=publish_early))
    stop.raise_if_requested()
    return result


async def _read(
    session: AppSession,
    requests: Collection[ReadRequest],
    on_progress: OnProgress,
    *,
    publish_early: bool,
) -> tuple[list[StreamResult], list[BuildResult]]:
    reading = asyncio.create_task(read_all(session, requests, on_progress))
    early = list[BuildResult]()
    try:
        if publish_early:
            early = await _publish_meanwhile(session, reading)
        return await reading, early
    finally:
        # It does nothing where the reading has ended.
        reading.cancel()
        # Until then, the runs record how they ended.
        await asyncio.wait([reading])


async def _publish_meanwhile(
    session: AppSession, reading: asyncio.Task[list[StreamResult]]
) -> list[BuildResult]:
    """Publish what is read every `publish_minutes`, until the reading has ended; return the builds.

    Building takes a tenth of the time at most. What fails is tried again by the last build of the
    night, which says so.
    """
    early = list[BuildResult]()
    pause = session.settings.publish_minutes * 60
    while True:
        done, _pending = await asyncio.wait([reading], timeout=pause)
        if done:
            return early
        began = session.clock.monotonic()
        problems = list[PartnerSyncError]()
        with _noted(problems, "What is read so far cannot be published"):
            # In a thread: the requests of the others go on.
            early.append(await asyncio.to_thread(build_with_books, session, early=True))
        for problem in problems:
            logger.warning("%s %s", problem, problem.remedy)
        took = session.clock.monotonic() - began
        pause = max(session.settings.publish_minutes * 60, took / MOST_BUILDING)


def _together(early: Sequence[BuildResult], last: BuildResult | None) -> BuildResult | None:
    """Return what the builds of a night did, as if it were one."""
    if last is None:
        return None
    builds = [*early, last]
    failed = dict[str, str]()
    results = list[LoadResult]()
    for built in builds:
        results += built.results
        failed |= built.failed
    is_new = any(built.is_new for built in builds)
    return BuildResult(last.version, is_new, tuple(results), failed)


def after_reading(session: AppSession, make: MakeVersion = build_with_books) -> SyncResult:
    """Make a version and its books, check both, write the report, tell people what was found.

    What fails once the version is published is in `problems` of the result. Raises
    PartnerSyncError where no version can be built.
    """
    return _check_and_tell(session, make(session))


def _check_and_tell(session: AppSession, built: BuildResult | None) -> SyncResult:
    published = current_version(session)
    checks = run_checks(session, published)
    problems = list[PartnerSyncError]()
    page = None
    with _noted(problems, "The report cannot be written"):
        page = _write_report(session, built)
    with _noted(problems, "Findings cannot be sent"):
        if session.settings.notify:
            app.notify.notify_findings(session)
    return SyncResult([], built, published, checks, page, problems)


def _write_report(session: AppSession, built: BuildResult | None) -> Path | None:
    """Return the page of the published books, written again where it is older than they are.

    A new version is summed up in a message to finance.
    """
    if built is None or built.version is None:
        return None
    page = current_page(session)
    if page is not None and not built.is_new:
        return page
    figures = read_figures_of_books(session, with_details=True)
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
        problems.append(as_failure(error, what))
