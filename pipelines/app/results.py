"""What a sync did, as values for the command line and Dagster."""

from dataclasses import dataclass
from enum import StrEnum

from pipelines.core.errors import ExitCode
from pipelines.core.finding import Finding
from pipelines.publish.build import BuildResult


class StreamState(StrEnum):
    """What became of one list in one sync."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Source(StrEnum):
    """Where the scan of a list comes from: this run, an interrupted one, or one of another run."""

    READ = "read"
    RESUMED = "resumed"
    REUSED = "reused"


@dataclass(frozen=True)
class Traffic:
    """Requests that were made for a list, and how many of them were answered 429."""

    requests: int = 0
    rate_limited: int = 0

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.requests - other.requests, self.rate_limited - other.rate_limited)


@dataclass(frozen=True)
class StreamResult:
    """One list of one sync. Without `scan_id` it was not read to its end.

    `requests` and `rate_limited` are those of this run, failed ones too; `message` is the proof in
    one sentence with the requests of the whole scan, or what went wrong, and `remedy` what to do
    then. `error_code` is what the failure means for a command by itself.
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
    source: Source = Source.READ
    error_code: ExitCode = ExitCode.DONE


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
    """Several runs and the build behind them; `build` None: none was asked for."""

    runs: tuple[RunResult, ...]
    build: BuildResult | None
    findings: tuple[Finding, ...]
    exit_code: ExitCode

    @property
    def streams(self) -> tuple[StreamResult, ...]:
        """The lists of all runs."""
        return tuple(stream for run in self.runs for stream in run.streams)
