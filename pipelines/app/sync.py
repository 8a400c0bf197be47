"""The main job: read lists into scan files, then build and publish one version."""

from pipelines.app.checkup import evaluate_checks
from pipelines.app.progress import Progress
from pipelines.app.read import ReadRequest, read_connection
from pipelines.app.results import RunResult, StreamState, SyncResult
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError, ExitCode
from pipelines.core.finding import Finding, Severity
from pipelines.publish.build import BuildResult, build

__all__ = ["ReadRequest", "build_version", "read_connection", "requests_for", "sync"]


def requests_for(
    session: AppSession, connections: list[str] | None, streams: list[str] | None
) -> list[ReadRequest]:
    """Return a request for each connection (None: all) that has one of the streams (None: all).

    Raises ConfigurationError for a name that is not configured.
    """
    settings = session.settings
    chosen = [settings.connection(name) for name in connections or settings.connections()]
    if not streams:
        return [ReadRequest(connection.name) for connection in chosen]
    possible = {
        connection.name: [stream.name for stream in settings.streams_of(connection)]
        for connection in chosen
    }
    known = list(dict.fromkeys(name for names in possible.values() for name in names))
    if unknown := sorted(set(streams) - set(known)):
        raise ConfigurationError(
            f"There is no stream `{', '.join(unknown)}`. Possible streams: {', '.join(known)}."
        )
    wanted = {
        name: tuple(stream for stream in names if stream in streams)
        for name, names in possible.items()
    }
    return [ReadRequest(name, names) for name, names in wanted.items() if names]


def sync(
    session: AppSession, requests: list[ReadRequest], progress: Progress, *, publish: bool = True
) -> SyncResult:
    """Read the requested lists, then build and publish one version of all that was read."""
    read = tuple(read_connection(session, request, progress) for request in requests)
    built = build_version(session, progress) if publish else None
    findings = evaluate_checks(session)
    return SyncResult(read, built, findings, exit_code(read, built, findings))


def build_version(session: AppSession, progress: Progress) -> BuildResult:
    """Build and publish a version from every scan that waits for it.

    Raises BuildFailed, LockHeld and StorageFailed; the published version is then untouched.
    """
    return build(session, progress.note)


def exit_code(
    read: tuple[RunResult, ...], built: BuildResult | None, findings: tuple[Finding, ...]
) -> ExitCode:
    """Return 0 only if every list is complete, published, and nothing needs attention.

    Without a build (`built` None), nobody asked for more than complete lists.
    """
    streams = [stream for run in read for stream in run.streams]
    if not any(run.read for run in read):
        is_usage = {stream.error_code for stream in streams} == {ExitCode.USAGE}
        return ExitCode.USAGE if is_usage else ExitCode.NOTHING_PUBLISHED
    if built is not None and built.version is None:
        return ExitCode.NOTHING_PUBLISHED
    if any(stream.state is not StreamState.COMPLETE for stream in streams):
        return ExitCode.NEEDS_ATTENTION
    return ExitCode.DONE if built is None else build_exit_code(built, findings)


def build_exit_code(built: BuildResult, findings: tuple[Finding, ...]) -> ExitCode:
    """Return what a build means for a command."""
    if built.version is None:
        return ExitCode.NOTHING_PUBLISHED
    if built.failed or any(finding.severity is not Severity.INFO for finding in findings):
        return ExitCode.NEEDS_ATTENTION
    return ExitCode.DONE
