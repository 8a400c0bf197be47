"""The main job: read lists into scan files, then build and publish one version."""

from pipelines.app.checkup import evaluate_checks
from pipelines.app.progress import Progress
from pipelines.app.read import ReadRequest, read_connection
from pipelines.app.results import RunResult, StreamState, SyncResult
from pipelines.app.session import AppSession
from pipelines.checks.check import Finding, Severity
from pipelines.core.errors import ExitCode
from pipelines.publish.build import BuildResult, build

__all__ = ["ReadRequest", "build_version", "read_connection", "sync"]


def build_version(session: AppSession, progress: Progress) -> BuildResult:
    """Build and publish a version from every scan that waits for it.

    Raises BuildFailed, LockHeld and StorageFailed; the published version is then untouched.
    """
    return build(session, progress.note)


def sync(
    session: AppSession, requests: list[ReadRequest], progress: Progress, *, publish: bool = True
) -> SyncResult:
    """Read the requested lists, then build and publish one version of all that was read."""
    read = tuple(read_connection(session, request, progress) for request in requests)
    built = build_version(session, progress) if publish else None
    findings = evaluate_checks(session)
    return SyncResult(read, built, findings, exit_code(read, built, findings))


def exit_code(
    read: tuple[RunResult, ...], built: BuildResult | None, findings: tuple[Finding, ...]
) -> ExitCode:
    """Return 0 only if every list is complete, published, and nothing needs attention."""
    states = {stream.state for run in read for stream in run.streams}
    if built is not None and (built.version is None or not any(run.read for run in read)):
        return ExitCode.NOTHING_PUBLISHED
    if states - {StreamState.COMPLETE} or (built is not None and built.failed):
        return ExitCode.NEEDS_ATTENTION
    if any(finding.severity is not Severity.INFO for finding in findings):
        return ExitCode.NEEDS_ATTENTION
    return ExitCode.DONE
