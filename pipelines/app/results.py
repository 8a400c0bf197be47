"""What a sync did, as values for the command line and Dagster."""

from dataclasses import dataclass
from enum import StrEnum

from pipelines.checks.check import Finding
from pipelines.core.errors import ExitCode
from pipelines.publish.build import BuildResult


class StreamState(StrEnum):
    """What became of one list in one sync."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class StreamResult:
    """One list of one sync. `reused` says that a scan of another run was new enough.

    `message` is the proof in one sentence, or what went wrong, and `remedy` what to do then.
    """

    connection: str
    stream: str
    state: StreamState
    scan_id: str | None
    rows: int | None
    requests: int
    rate_limited: int
    message: str
    remedy: str = ""
    reused: bool = False


@dataclass(frozen=True)
class RunResult:
    """One run: the lists of one connection, in the order of configuration."""

    run_id: str
    connection: str
    streams: tuple[StreamResult, ...]

    @property
    def read(self) -> bool:
        """Whether at least one list was read to its end."""
        return any(stream.scan_id for stream in self.streams)


@dataclass(frozen=True)
class SyncResult:
    """Several runs and the build behind them."""

    runs: tuple[RunResult, ...]
    build: BuildResult | None
    findings: tuple[Finding, ...]
    exit_code: ExitCode
