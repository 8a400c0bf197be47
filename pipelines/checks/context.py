"""Here: what a check may ask: the published version, the metadata database, settings, the time.

Not here: how the published version is read (published).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, TypeVar

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from pipelines.checks.published import ListName, LoadedList, Published
from pipelines.config.settings import Settings
from pipelines.finance.reports.alerts import Alerts
from pipelines.metadata import scans
from pipelines.metadata.runs import is_running
from pipelines.metadata.tables import Run, Scan, VersionRow, VersionStatus
from pipelines.warehouse.version_files import Version

T = TypeVar("T")
# Within this time, the build behind a sync has ended.
BUILD_FOLLOWS: Final = timedelta(hours=1)


class CannotKnow(Exception):
    """Raised where a check has nothing to judge by; the text says what is missing."""


def known(value: T | None, missing: str) -> T:
    """Return a value that is known. Raises CannotKnow."""
    if value is None:
        raise CannotKnow(missing)
    return value


@dataclass(frozen=True)
class CheckContext:
    """What checks may ask. `lists` are those that the configuration reads."""

    metadata: Session
    published: Published
    lists: tuple[ListName, ...]
    settings: Settings
    now: datetime

    @cached_property
    def waiting(self) -> dict[ListName, Scan]:
        """The newest scan of each list that waits for a build, if none is to be expected.

        One is while a sync of any connection runs, and for an hour after it; but not for a scan
        that a later sync, which has ended before, should have published, or a build that failed.
        """
        waiting = scans.buildable_scans(self.metadata, self.published.scan_ids)
        if self._is_build_expected():
            overdue = self._overdue_runs()
            waiting = [scan for scan in waiting if scan.run_id in overdue]
        return {ListName(scan.connection, scan.stream): scan for scan in waiting}

    def _is_build_expected(self) -> bool:
        """Return whether a sync runs, or has ended so lately that the build may still follow."""
        # Else a finding would be sent seconds before the build behind each sync has ended.
        ended_lately = and_(Run.ended_at > self.now - BUILD_FOLLOWS, Run.ended_at <= self.now)
        recent = self.metadata.scalars(select(Run).where(or_(Run.ended_at.is_(None), ended_lately)))
        return any(run.ended_at or is_running(self.metadata, run) for run in recent)

    def _overdue_runs(self) -> set[str]:
        """Return the runs whose scans an earlier build should have published."""
        long_ago = self.now - BUILD_FOLLOWS
        last_sync = select(func.max(Run.started_at)).where(Run.ended_at < long_ago)
        # A version that was never published has no digest.
        failed_build = select(func.max(VersionRow.created_at)).filter_by(
            status=VersionStatus.DELETED, sha256=None
        )
        is_overdue = or_(
            Run.ended_at < last_sync.scalar_subquery(),
            Run.ended_at < failed_build.scalar_subquery(),
        )
        return set(self.metadata.scalars(select(Run.run_id).where(is_overdue)))

    def versions(self) -> list[int]:
        """Return the versions that were published and have a file."""
        kept = select(VersionRow.number).filter_by(status=VersionStatus.PUBLISHED)
        return list(self.metadata.scalars(kept.order_by(VersionRow.number)))

    def require_readable(self) -> None:
        """Raise CannotKnow if the published version is unreadable."""
        if self.published.problem:
            raise CannotKnow(f"The published version cannot be read: {self.published.problem}")

    def version(self) -> Version:
        """Return the published version. Raises CannotKnow if there is none that can be read."""
        self.require_readable()
        return known(self.published.version, "Nothing is published yet.")

    def alerts(self) -> Alerts:
        """Return what of the books needs a person. Raises CannotKnow if nothing is reconciled."""
        self.version()
        if self.published.books_problem:
            raise CannotKnow(f"The books cannot be read: {self.published.books_problem}")
        return known(self.published.alerts, "There are no books of the published version.")

    def load(self, about: ListName) -> LoadedList:
        """Return what is published of a list. Raises CannotKnow if nothing is."""
        self.require_readable()
        return known(self.published.loaded.get(about), f"No scan of {about} is published.")

    def scan(self, about: ListName) -> Scan:
        """Return the newest sealed scan of a list. Raises CannotKnow without one."""
        return known(self._newest.get(about), f"{about} was never read to its end.")

    @cached_property
    def _newest(self) -> dict[ListName, Scan | None]:
        return {about: scans.newest_sealed(self.metadata, *about) for about in self.lists}

    @cached_property
    def held(self) -> dict[ListName, Scan]:
        """The scan of each list that waits for a person."""
        found = scans.held_scans(self.metadata)
        return {ListName(scan.connection, scan.stream): scan for scan in found}
