"""What is asked of a sync, its progress and what it did, for the command line and Dagster."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from pipelines.app.checkup import exit_code, findings_of
from pipelines.app.session import AppSession
from pipelines.archive.scan_file import SealedScan
from pipelines.checks.check import CheckResult
from pipelines.checks.published import Published
from pipelines.config.settings import Stream
from pipelines.core.alike import About
from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.core.finding import Finding
from pipelines.load.load import LoadResult
from pipelines.metadata.runs import Outcome
from pipelines.versions.build import BuildResult

LOG_EVERY_SECONDS = 30
OnProgress = Callable[[str, int, int, int | None], None]
"""Receives `connection/stream`, rows and requests so far, and the rows expected (None: unknown)."""
logger = logging.getLogger(__name__)


class LoggedProgress:
    """Logs how far the read of each list is, now and then."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}

    def __call__(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Log it, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._logged_at.setdefault(stream, now) > LOG_EVERY_SECONDS:
            self._logged_at[stream] = now
            of = f" of about {expected_rows:,}" if expected_rows else ""
            logger.info("%s: %s%s rows, %s requests so far.", stream, f"{rows:,}", of, requests)


class TotalProgress:
    """Passes on how far the reads of all lists are together, as if they were one list."""

    def __init__(self, on_progress: OnProgress, lists: int) -> None:
        self._on_progress = on_progress
        self._lists = lists
        self._reports: dict[str, tuple[int, int, int | None]] = {}

    def __call__(self, stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
        """Add a report; the rows expected are known once they are for every list."""
        self._reports[stream] = (rows, requests, expected_rows)
        reports = self._reports.values()
        expected: int | None = 0
        for list_rows, _requests, list_expected in reports:
            if expected is None or list_expected is None:
                expected = None
            else:
                # A list can be longer than it was when it was read last.
                expected += max(list_expected, list_rows)
        if len(reports) < self._lists:
            expected = None
        total_rows = sum(list_rows for list_rows, _requests, _expected in reports)
        total_requests = sum(list_requests for _rows, list_requests, _expected in reports)
        name = f"{len(reports):,} of {self._lists:,} lists"
        self._on_progress(name, total_rows, total_requests, expected)


@dataclass(frozen=True)
class ReadRequest:
    """Which lists of one connection to read (none named: all), and what asked for it.

    A scan that began at or after the scheduled tick, else after the request, is used again.
    """

    connection: str
    streams: tuple[str, ...] = ()
    trigger: str = "command"
    scheduled_at: datetime | None = None

    def lists(self, session: AppSession) -> list[Stream]:
        """Return those of the lists that the connection has. Raises ConfigurationError: none."""
        known = session.lists([self.connection])[self.connection]
        chosen = [stream for stream in known if stream.name in self.streams]
        if chosen:
            return chosen
        return session.lists([self.connection], self.streams)[self.connection]


@dataclass
class StreamResult:
    """One list of one run: interrupted, until its read has ended.

    Without `scan` it was not read to its end. `requests` are those of this run, failed ones too,
    `rate_limited` those answered 429. `message` is the proof, or what went wrong; `exit_code` is
    what that means for a command by itself, `may_pass` whether another try may succeed soon.
    """

    connection: str
    stream: str
    state: Outcome = Outcome.INTERRUPTED
    source: Literal["read", "resumed", "reused", "archive"] = "read"  # reused: of another run
    scan: SealedScan | None = None
    requests: int = 0
    rate_limited: int = 0
    message: str = "Interrupted before its end. Analysts still see the published version."
    remedy: str = "Run `partner-sync sync` within 24 hours to resume it."
    exit_code: ExitCode = ExitCode.NOTHING_PUBLISHED
    may_pass: bool = False

    def about(self) -> About:
        """Return the message about the list."""
        return About(self.connection, self.stream, self.message, self.remedy)

    def why_missing(self, day: date) -> str:
        """Return why a list has no scan of a day; empty if it has one.

        A scan counts for the day on which it began. That is yesterday where the run resumed an
        interrupted scan, or where midnight passed.
        """
        if self.scan is None:
            return f"{self.message} {self.remedy}".strip()
        began = self.scan.header.day
        if began == day:
            return ""
        return (
            f"This run finished a scan that began on {began}, so it counts for that day. "
            f"Launch {day} again to read it."
        )

    def values(self, built: BuildResult | None) -> dict[str, Any]:
        """Return what `--json` prints: the list, and what the build did with its scan."""
        values: dict[str, Any] = {
            "connection": self.connection,
            "stream": self.stream,
            "requests": self.requests,
            "rate_limited": self.rate_limited,
            "message": self.message,
            "remedy": self.remedy,
            "new": None,
            "changed": None,
            "deleted": None,
            "rows": None,
            "proof": None,
            "scan": None,
            "result": self.state,
        }
        if self.scan is None:
            return values
        values["rows"] = self.scan.completeness.rows
        values["proof"] = self.state.upper()
        values["scan"] = self.scan.scan_id
        values["result"] = str(self.source)
        if built is None:
            return values
        if self.scan.scan_id in built.failed:
            values["result"] = f"{self.source}, not loaded"
        for loaded in built.results:
            if loaded.scan_id != self.scan.scan_id:
                continue
            if loaded.held:
                values["result"] = f"{self.source}, held"
            else:
                values["new"] = loaded.new
                values["changed"] = loaded.changed
                values["deleted"] = loaded.deleted
        return values


@dataclass(frozen=True)
class SyncResult:
    """What a night did; see `nightly.sync`.

    `streams` are the lists that were read. `build` is None where no version was asked for.
    `published` and `checks` are what analysts see then, and what the checks say of it. `report` is
    the page of the published books. `problems` are failures after publishing: of the report, and of
    messages.
    """

    streams: Sequence[StreamResult]
    build: BuildResult | None
    published: Published
    checks: Sequence[CheckResult]
    report: Path | None
    problems: Sequence[PartnerSyncError]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that the checks have found."""
        return findings_of(self.checks)

    @property
    def exit_code(self) -> ExitCode:
        """0 only if every list is complete and, with a build, nothing else needs attention.

        A scan that this build held counts, whatever became of it since.
        """
        if self._is_without_effect():
            return min(stream.exit_code for stream in self.streams)
        is_complete = all(stream.state is Outcome.COMPLETE for stream in self.streams)
        is_clear = is_complete and not self.problems
        if self.build is None:
            return ExitCode.DONE if is_clear else ExitCode.NEEDS_ATTENTION
        is_held = any(loaded.held for loaded in self.build.results)
        is_clear = is_clear and not self.build.failed and not is_held
        return exit_code(self.build.version, self.findings, is_clear=is_clear)

    def _is_without_effect(self) -> bool:
        """Return whether lists were requested, and nothing was read or published."""
        was_read = any(stream.scan for stream in self.streams)
        is_published = self.build is not None and self.build.is_new
        return bool(self.streams) and not was_read and not is_published

    def values(self, file: str) -> dict[str, Any]:
        """Return what `--json` prints; `file` is what analysts open, `version` what they see."""
        values: dict[str, Any] = {"exit_code": int(self.exit_code)}
        build = None if self.build is None else self._build_values(self.build, file)
        if build is not None and not self.streams:
            # A build by itself: there are no lists beside it.
            values.update(build)
        else:
            values["lists"] = [stream.values(self.build) for stream in self.streams]
            values["build"] = build
        values["findings"] = self.findings
        values["problems"] = [
            {"message": str(problem), "remedy": problem.remedy} for problem in self.problems
        ]
        return values

    def _build_values(self, built: BuildResult, file: str) -> dict[str, Any]:
        return {
            "version": built.version and built.version.number,
            "is_new": built.is_new,
            "file": file,
            "report": self.report and str(self.report),
            "scans": [_scan_values(loaded) for loaded in built.results],
            "failed": built.failed,
        }


def _scan_values(loaded: LoadResult) -> dict[str, Any]:
    return {
        "scan_id": loaded.scan_id,
        "new": loaded.new,
        "changed": loaded.changed,
        "deleted": loaded.deleted,
        "unchanged": loaded.unchanged,
        "quarantined": loaded.quarantined,
        "held": loaded.held,
    }
