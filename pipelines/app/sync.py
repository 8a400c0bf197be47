"""The main job: read lists into scan files, then build and publish a version."""

from dataclasses import dataclass
from datetime import datetime

from pipelines.app.progress import Progress
from pipelines.app.results import RunResult, SyncResult
from pipelines.app.session import AppSession
from pipelines.publish.build import BuildResult


@dataclass(frozen=True)
class ReadRequest:
    """Which lists of one connection to read, and for whom.

    `streams` None means all that the connection has. A scan that began at or after `not_before`
    (a schedule's tick, else the moment of the request) is reused instead of read again.
    """

    connection: str
    streams: tuple[str, ...] | None = None
    trigger: str = "command"
    scheduled_at: datetime | None = None


def read_connection(session: AppSession, request: ReadRequest, progress: Progress) -> RunResult:
    """Read lists of one connection into scan files; a failed list does not stop the others.

    Resumes open scans. Raises ConfigurationError, LockHeld, IdentityChanged; whatever fails for
    one list is in its StreamResult. KeyboardInterrupt ends the run as interrupted and is raised on.
    """
    raise NotImplementedError


def build_version(session: AppSession, progress: Progress) -> BuildResult:
    """Build and publish a version from every scan that waits for it; evaluate the checks."""
    raise NotImplementedError


def sync(session: AppSession, requests: list[ReadRequest], progress: Progress) -> SyncResult:
    """Read the requested lists, then build and publish one version of all that was read."""
    raise NotImplementedError
