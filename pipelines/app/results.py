"""What is asked of a sync and what it did, as values for the command line and Dagster."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pipelines.app.checkup import exit_code
from pipelines.app.session import AppSession
from pipelines.core.errors import ExitCode
from pipelines.core.finding import Finding
from pipelines.metadata.runs import Outcome
from pipelines.publish.build import BuildResult

JSON_NAMES = ("connection", "stream", "rows", "requests", "rate_limited", "message", "remedy")
SCAN_NAMES = ("scan_id", "new", "changed", "deleted", "unchanged", "quarantined", "held")


@dataclass(frozen=True)
class ReadRequest:
    """Which lists of one connection to read (none named: all), and what asked for it.

    A scan that began at or after the scheduled tick, else after the request, is used again.
    """

    connection: str
    streams: tuple[str, ...] | None = None
    trigger: str = "command"
    scheduled_at: datetime | None = None


def requests_for(
    session: AppSession, connections: Collection[str] | None, streams: Collection[str] | None
) -> list[ReadRequest]:
    """Return a request for each connection (none named: all) that has one of the streams."""
    chosen = session.lists(connections, streams).items()
    names = {name: tuple(each.name for each in has) for name, has in chosen if has or not streams}
    return [ReadRequest(name, has) for name, has in names.items()]


@dataclass
class StreamResult:
    """One list of one sync: interrupted, until its read has ended.

    Without `scan_id` it was not read to its end. `requests` are those of this run, failed ones too,
    `rate_limited` those answered 429. `message` is the proof, or what went wrong; `exit_code` is
    what that means for a command by itself.
    """

    connection: str
    stream: str
    state: Outcome = Outcome.INTERRUPTED
    source: Literal["read", "resumed", "reused"] = "read"  # reused: the scan is of another run
    scan_id: str | None = None
    rows: int | None = None
    requests: int = 0
    rate_limited: int = 0
    message: str = "Interrupted before its end. Analysts still see the published version."
    remedy: str = "Run `partner-sync sync` within 24 hours to resume it."
    exit_code: ExitCode = ExitCode.NOTHING_PUBLISHED


@dataclass(frozen=True)
class SyncResult:
    """Lists that were read, and the build behind them; `build` None: none was asked for."""

    streams: tuple[StreamResult, ...] = ()
    build: BuildResult | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """0 only if every list is complete and, with a build, nothing else needs attention."""
        if self.streams and not any(each.scan_id for each in self.streams):
            return min(each.exit_code for each in self.streams)
        is_complete = all(each.state is Outcome.COMPLETE for each in self.streams)
        if self.build is None:
            return ExitCode.DONE if is_complete else ExitCode.NEEDS_ATTENTION
        is_clear = is_complete and not self.build.failed
        return exit_code(self.build.version, self.findings, is_clear=is_clear)

    def values(self, file: str) -> dict[str, Any]:
        """Return what `--json` prints; `file` is what analysts open, `version` what they see."""
        built = self.build
        notes = {each.scan_id: ", held" for each in (built.results if built else ()) if each.held}
        notes |= dict.fromkeys(built.failed if built else (), ", not loaded")
        lists = [
            {name: getattr(each, name) for name in JSON_NAMES}
            | {"proof": each.state.upper() if each.scan_id else None, "scan": each.scan_id}
            | {"result": each.source + notes.get(each.scan_id, "") if each.scan_id else each.state}
            for each in self.streams
        ]
        build = built and {
            "version": built.version and built.version.number,
            "is_new": built.is_new,
            "file": file,
            "scans": [{name: getattr(each, name) for name in SCAN_NAMES} for each in built.results],
            "failed": built.failed,
        }
        shown = {"lists": lists, "build": build} if lists else build or {}
        return {"exit_code": int(self.exit_code), **shown, "findings": self.findings}
