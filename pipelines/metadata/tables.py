"""The metadata database: mapped classes. A new database gets these tables.

An older one is changed by `migrations/`. To add a column: here, in a new revision there, and its
number in `HEAD` of `engine.py`.
"""

from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import JSON, DateTime, Dialect, Index, String, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column


class UtcTime(TypeDecorator[datetime]):
    """An aware datetime in UTC, with microseconds, on every engine."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Refuse a naive datetime; store UTC."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a datetime without a time zone")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return an aware datetime: SQLite drops the zone."""
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class Base(MappedAsDataclass, DeclarativeBase, kw_only=True):
    """Base of the mapped classes; each is a dataclass."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcTime,
        dict[str, Any]: JSON,
    }


class Run(Base, kw_only=True):
    """One sync of one connection. `outcome` is None while it runs, or after it was killed.

    How many requests a killed run sent is not known: its scans count them when they are resumed.
    `lists` has an outcome (`state`), `message` and `remedy` by stream; all interrupted at first.
    """

    __tablename__ = "runs"

    run_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    connection: Mapped[str]
    trigger: Mapped[str]  # command | schedule | backfill
    scheduled_at: Mapped[datetime | None] = mapped_column(default=None)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    owner: Mapped[str]  # host, process id and start time of the process
    outcome: Mapped[str | None] = mapped_column(default=None)  # complete|partial|failed|interrupted
    message: Mapped[str | None] = mapped_column(default=None)
    lists: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    requests: Mapped[int | None] = mapped_column(default=None)
    rate_limited: Mapped[int | None] = mapped_column(default=None)  # answers with status 429


class Scan(Base, kw_only=True):
    """One read of one list. `status`: see `ScanStatus`; a new row is open."""

    __tablename__ = "scans"
    __table_args__ = (Index("scans_by_list", "connection", "stream", "started_at"),)

    scan_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    run_id: Mapped[str] = mapped_column(String(36), index=True)
    connection: Mapped[str]
    stream: Mapped[str]
    day: Mapped[date]  # UTC date on which the scan began
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None] = mapped_column(default=None)
    status: Mapped[str] = mapped_column(default="open")
    complete: Mapped[bool | None] = mapped_column(default=None)
    rows: Mapped[int | None] = mapped_column(default=None)
    requests: Mapped[int] = mapped_column(default=0)
    file: Mapped[str]  # below the archive
    sha256: Mapped[str | None] = mapped_column(default=None)
    # Named `memory` here and in scan files since the first release.
    traits: Mapped[dict[str, Any] | None] = mapped_column("memory", default=None)  # a ListTraits
    reason: Mapped[str | None] = mapped_column(default=None)  # of failed, held, rejected scans


class HomeRow(Base, kw_only=True):
    """The home that a database on a server belongs to; at most one row."""

    __tablename__ = "homes"

    home_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    folder: Mapped[str]  # when it was claimed, for people
    claimed_at: Mapped[datetime]


class RateLimitActor(Base, kw_only=True):
    """The rate limit of one actor, shared by all processes."""

    __tablename__ = "rate_limit_actors"

    actor: Mapped[str] = mapped_column(primary_key=True)
    limit: Mapped[int | None] = mapped_column(default=None)  # learned from answers
    clock: Mapped[str] = mapped_column(default="")  # whose seconds the times are: Metadata.now
    # When the pause ends, by that clock. After a restart it begins again, and Unix time counts.
    blocked_until: Mapped[float] = mapped_column(default=0.0)
    blocked_until_unix: Mapped[float] = mapped_column(default=0.0)
    caution_until: Mapped[float] = mapped_column(default=0.0)
    caution_seconds: Mapped[float] = mapped_column(default=0.0)  # length of the last caution
    others: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)  # requests by second


class RateLimitSlot(Base, kw_only=True):
    """One request that counts against an actor's rate limit. `place` is its place in the queue.

    Times are seconds of the clock that `Metadata.now` reads.
    """

    __tablename__ = "rate_limit_slots"
    __table_args__ = (
        Index("rate_limit_slots_by_actor", "actor", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    actor: Mapped[str]
    owner: Mapped[str]
    place: Mapped[int] = mapped_column(default=0)
    sent_at: Mapped[float | None] = mapped_column(default=None)  # None while it waits
    held_until: Mapped[float | None] = mapped_column(default=None)  # None until answered or failed
    credit: Mapped[float | None] = mapped_column(default=None)  # None without an answer


class Identity(Base, kw_only=True):
    """Who the service says a connection is; pinned at the first sync.

    On the merchant surface, `actor` is a digest of the API key that was used last.
    """

    __tablename__ = "identities"

    connection: Mapped[str] = mapped_column(primary_key=True)
    base_url: Mapped[str]
    actor: Mapped[str]
    identity: Mapped[dict[str, Any]]
    pinned_at: Mapped[datetime]


class ApiSpec(Base, kw_only=True):
    """The interface description of a connection's service, as a person saw it last.

    `parts` are digests of its routes and schemas by name. `change` is what the last sync found.
    """

    __tablename__ = "api_specs"

    connection: Mapped[str] = mapped_column(primary_key=True)
    path: Mapped[str]
    parts: Mapped[dict[str, Any]]
    seen_at: Mapped[datetime]
    change: Mapped[str | None] = mapped_column(default=None)


class FindingRow(Base, kw_only=True):
    """One finding. `cleared_at` is None while it holds, `notified_at` if nobody was told."""

    __tablename__ = "findings"

    code: Mapped[str] = mapped_column(primary_key=True)
    connection: Mapped[str] = mapped_column(primary_key=True)
    stream: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    severity: Mapped[str]
    message: Mapped[str]
    remedy: Mapped[str]
    blocks: Mapped[bool]
    first_seen: Mapped[datetime]
    last_seen: Mapped[datetime]
    cleared_at: Mapped[datetime | None] = mapped_column(default=None)
    notified_at: Mapped[datetime | None] = mapped_column(default=None)


class Notification(Base, kw_only=True):
    """One message that was sent to a channel; `error` says why it was not."""

    __tablename__ = "notifications"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    sent_at: Mapped[datetime]
    channel: Mapped[str]  # the environment variable that holds its URL
    text: Mapped[str]
    error: Mapped[str | None] = mapped_column(default=None)


class Decision(Base, kw_only=True):
    """What a person decided, with name and reason. Rows are only added."""

    __tablename__ = "decisions"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    decided_at: Mapped[datetime]
    person: Mapped[str]
    kind: Mapped[str]  # approve, reject, rollback, accept_identity, accept_mapping, erase
    subject: Mapped[str]  # a scan, a version, a connection, the digest of a mapping
    reason: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)


class VersionStatus(StrEnum):
    """State of a version: PUBLISHED ones were published at some time and have a file.

    The file of a LOST one went without us; DELETED ones we deleted, or they were never published.
    """

    BUILDING = "building"
    PUBLISHED = "published"
    LOST = "lost"
    DELETED = "deleted"


class VersionRow(Base, kw_only=True):
    """One version of the warehouse. The symlink says which is published."""

    __tablename__ = "versions"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(default=VersionStatus.BUILDING)
    base: Mapped[int | None] = mapped_column(default=None)
    sha256: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime]
    note: Mapped[str] = mapped_column(default="")
    # Published while other connections were read: the next version of the night replaces it.
    is_early: Mapped[bool] = mapped_column(default=False)
    # Number of the format, and scans besides those of another version: see `version_scans`.
    content: Mapped[dict[str, Any] | None] = mapped_column(default=None)


class Close(Base, kw_only=True):
    """One close of a month, of which `closes/<month>/<number>` is the copy.

    A month is closed by at most one row in state `closed` without `reopened_at`. `approval` is
    `two` where the operating system says who approved, `one` for a single person, and `declared`
    where preparer and reviewer are names that somebody typed.
    """

    __tablename__ = "closes"

    month: Mapped[date] = mapped_column(primary_key=True)  # its first day
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    preparer: Mapped[str]
    reviewer: Mapped[str]
    note: Mapped[str]
    closed_at: Mapped[datetime]
    version: Mapped[int]  # that analysts saw then
    manifest_sha256: Mapped[str]
    reopened_at: Mapped[datetime | None] = mapped_column(default=None)
    reopened_by: Mapped[str | None] = mapped_column(default=None)
    reopened_reason: Mapped[str | None] = mapped_column(default=None)
    state: Mapped[str] = mapped_column(default="closed")  # prepared | closed | withdrawn
    approval: Mapped[str] = mapped_column(default="declared")  # declared | one | two
    approved_at: Mapped[datetime | None] = mapped_column(default=None)  # by the reviewer, of two
    accept_open: Mapped[str | None] = mapped_column(default=None)  # why open breaks are accepted
    chosen_connections: Mapped[str | None] = mapped_column(default=None)  # with commas; None: all

    @property
    def connections(self) -> list[str] | None:
        """Return the connections for which the month is closed; None: all."""
        return self.chosen_connections.split(",") if self.chosen_connections else None


class BreakRow(Base, kw_only=True):
    """What is remembered of a break since the books of `version`. Rows are only added.

    The newest row of a break counts that is not undone: a rollback undoes those of later versions.
    Amounts are exact, as text.
    """

    __tablename__ = "breaks"
    __table_args__ = (
        Index("breaks_by_break", "break_id", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    version: Mapped[int]
    undone_at: Mapped[datetime | None] = mapped_column(default=None)
    break_id: Mapped[str]
    rule: Mapped[str]
    connection: Mapped[str]
    subject: Mapped[str | None]
    partner: Mapped[str | None]
    month: Mapped[date | None]
    currency: Mapped[str | None]
    cause: Mapped[str | None]
    used_amount: Mapped[str | None]
    billed_amount: Mapped[str | None]
    difference: Mapped[str | None]
    rows: Mapped[int]
    first_seen: Mapped[datetime]
    last_seen: Mapped[datetime]
    gone_at: Mapped[datetime | None]
    returned_at: Mapped[datetime | None]


class CorrectionRow(Base, kw_only=True):
    """A correction of a closed month that was posted with the books of `version`, as `BreakRow`."""

    __tablename__ = "corrections"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number_of_row: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    version: Mapped[int]
    undone_at: Mapped[datetime | None] = mapped_column(default=None)
    month: Mapped[date]
    number: Mapped[int]
    side: Mapped[str]
    connection: Mapped[str]
    id: Mapped[str | None]
    partner: Mapped[str | None]
    currency: Mapped[str | None]
    amount_before: Mapped[str | None]
    amount_now: Mapped[str | None]
    difference: Mapped[str | None]
    posted_to: Mapped[date]
    seen_at: Mapped[datetime]


class OwnSourceRow(Base, kw_only=True):
    """What a source of own books had: the most rows since `fewest_rows` was set, its first month.

    A source that is taken out of the mapping keeps its row.
    """

    __tablename__ = "own_sources"

    source: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[int | None]
    fewest_rows: Mapped[int | None]
    begins: Mapped[date | None]


class BooksRow(Base, kw_only=True):
    """One file of books: of which version, made when, from data that ends at `as_of`."""

    __tablename__ = "books"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    made_at: Mapped[datetime]
    as_of: Mapped[datetime | None] = mapped_column(default=None)
    sha256: Mapped[str | None] = mapped_column(default=None)  # of the file
