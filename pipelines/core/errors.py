"""Here: expected failures; any other exception is a defect and keeps its traceback."""

from enum import IntEnum
from typing import Final

from pipelines.core.text import printable

DEFECT: Final = "This is a defect of partner-sync. Report it with this message."


class ExitCode(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    NOTHING_PUBLISHED = 1
    USAGE = 2
    NEEDS_ATTENTION = 3
    INTERRUPTED = 130


class PartnerSyncError(Exception):
    """An expected failure.

    `str()` says what happened, to what, and what it means for the data. `remedy` is the command or
    the step that fixes it, empty if there is none. `may_pass`: the same command may succeed a
    minute later, without a person; Dagster then launches the run again.
    """

    exit_code = ExitCode.NOTHING_PUBLISHED
    may_pass = False

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class ConfigurationError(PartnerSyncError):
    """A setting, an option or a configuration file is wrong; nothing was sent."""

    exit_code = ExitCode.USAGE


class ServiceError(PartnerSyncError):
    """The service refused, failed, or could not be reached."""


class RateLimited(ServiceError):
    """The service answered 429."""


class Postponed(ServiceError):
    """The service asks to wait longer than a run may."""


class Unavailable(ServiceError):
    """A failure that may pass."""


class Forbidden(ServiceError):
    """The credentials do not open this route: actor, scope, mapping or trial."""


class NotPermitted(Forbidden):
    """The account's actor type or scopes do not open this list; they may open others."""


class UnexpectedAnswer(ServiceError):
    """The answer contradicts the interface document."""


class PageSizeRefused(UnexpectedAnswer):
    """The service does not give pages of this size."""


class ArchiveDamaged(PartnerSyncError):
    """A scan file is not what was written."""


class NewerFormat(PartnerSyncError):
    """A file was written by a newer partner-sync; it is left as it is."""


class UpgradeFailed(PartnerSyncError):
    """A version of an older format cannot be upgraded."""


class LoadFailed(PartnerSyncError):
    """A scan could not be loaded."""


class LockHeld(PartnerSyncError):
    """Another process holds a lock for longer than we wait."""


class LockLost(PartnerSyncError):
    """This process does not hold a lock any more that it took."""

    may_pass = True


class Superseded(PartnerSyncError):
    """Another process has published since this one began."""

    may_pass = True


class MemoryRefused(PartnerSyncError):
    """DuckDB needs more memory than it may use."""


class StorageFailed(PartnerSyncError):
    """A disk or database cannot be read or written: full, read-only or damaged."""

    may_pass = True  # a server may be back, or another machine may have a good disk


def as_failure(error: Exception, what: str) -> PartnerSyncError:
    """Return an error as an expected failure; of a defect, `what` says what it prevented."""
    if isinstance(error, PartnerSyncError):
        return error
    message = f"{what}: unexpected {type(error).__name__}: {printable(error)}."
    return PartnerSyncError(message, DEFECT)
