"""Every failure we expect, split by what the caller does next: wait, try again, stop, set aside.

The text of each is written for people: what happened, where, what it means for their data and
what to do. Anything that is not one of these is a defect and keeps its traceback.

    PartnerSyncError
    ├── ConfigurationError      fix a setting; nothing was sent
    ├── ServiceError            the service, or the way to it
    │   ├── RateLimited         wait, then ask again
    │   ├── Postponed           stop for now: run again when the time is over, it goes on
    │   ├── Unavailable         try again a few times
    │   ├── AccessDenied        stop: the credentials open nothing
    │   │   └── Forbidden       stop here: this route is closed to us; others may be open
    │   └── ContractBroken      stop: the answer is not what the interface document promises
    ├── IdentityChanged         stop: the connection landed for somebody else; a person decides
    ├── DayUnread               nothing was read that day, and today's answer is not that day's
    ├── DayDropped              a day's readings are in the base snapshot; they stay as they are
    ├── LandingFailed           this stream keeps its last published rows; its pages are archived
    ├── PublicationFailed       the last published file stays
    ├── NothingPublished        there is no published file yet; a sync makes the first
    ├── ExportFailed            what was there before stays; the published file is untouched
    ├── NotTold                 an alert did not reach a target; it is tried again the next time
    ├── StorageFailed           disk or store takes nothing; make room, run again and it goes on
    ├── WarehouseBusy           another run writes; it did not finish in time
    └── WarehouseDamaged        tables are not what was folded; the archive builds them again
"""

from datetime import datetime


class PartnerSyncError(Exception):
    """An expected failure; `str()` of it is what the user reads."""


class ConfigurationError(PartnerSyncError):
    """A setting is missing or wrong."""


class ServiceError(PartnerSyncError):
    """The service refused, failed, or could not be reached."""


class RateLimited(ServiceError):
    """The service answered 429 (Limits, rule 4); the budget already waits for it."""


class Postponed(ServiceError):
    """The service asks to wait longer than a run does; from `until` on the scan goes on."""

    def __init__(self, text: str, until: datetime) -> None:
        super().__init__(text)
        self.until = until


class Unavailable(ServiceError):
    """A failure that may pass: no connection, a broken answer, 408, 425 or 5xx.

    `tries` is how often the request may be made in all, the first time included; `wait` the
    seconds that the service asks for (Retry-After); `said` are its own words, put last.
    """

    def __init__(
        self, text: str, *, tries: int = 6, wait: float | None = None, said: str = ""
    ) -> None:
        super().__init__(f"{text}: {said}" if said else text)
        self.text = text
        self.tries = tries
        self.wait = wait
        self.said = said


class AccessDenied(ServiceError):
    """The credentials are not taken, or not any more."""


class Forbidden(AccessDenied):
    """The credentials are taken and do not open this route: scope, actor, mapping or trial."""


class ContractBroken(ServiceError):
    """The service answered something that the interface document rules out."""


class IdentityChanged(PartnerSyncError):
    """The service knows a connection as somebody else than whom it has landed for."""


class DayUnread(PartnerSyncError):
    """A day that is over and was never read."""


class DayDropped(PartnerSyncError):
    """A day that was read, whose manifests retention dropped: it cannot be folded again."""


class LandingFailed(PartnerSyncError):
    """A stream's archived pages could not be turned into its tables."""


class PublicationFailed(PartnerSyncError):
    """The copy that was to be published did not equal the warehouse."""


class NothingPublished(PartnerSyncError):
    """There is no published file that could be read."""


class ExportFailed(PartnerSyncError):
    """A destination did not take the tables, or not exactly; it keeps what it had."""


class NotTold(PartnerSyncError):
    """A target of alerts took no message."""


class StorageFailed(PartnerSyncError):
    """Archive or ledger cannot be written: full, read-only, or locked by a process that hangs."""


class WarehouseBusy(PartnerSyncError):
    """Another process kept the warehouse locked for longer than we wait."""


class WarehouseDamaged(PartnerSyncError):
    """The work database does not hold what was folded into it, or is none any more."""
