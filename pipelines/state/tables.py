"""The ledger's tables, in the order in which the chain writes them.

Keys are strings (uuid) or what the world already counts by. Not here: the tables of what people
said (judgements).
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Date,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from pipelines.state.types import Number, ProofJson, UtcTime

METADATA = MetaData()
# Of the ledger as a whole; kept in it, so that another version's is told apart (state/shape.py).
SHAPE = 11

RUNS = Table(
    "runs",
    METADATA,
    Column("run", String(36), primary_key=True),
    Column("connection", String, nullable=False),
    Column("day", Date, nullable=False),
    Column("begun_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column(
        "outcome",
        String,
        comment="published | partial | failed | interrupted; empty: it runs or was killed",
    ),
    Index("runs_of", "connection", "begun_at"),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("number", Number, primary_key=True),
    Column("run", String(36), nullable=False, index=True),
    Column("stream", String, comment="empty for calls that belong to no stream, as a token"),
    Column("method", String, nullable=False),
    Column("path", String, nullable=False),
    Column("query", String, nullable=False),
    Column("sent_at", UtcTime, nullable=False),
    Column("waited", Float, nullable=False, comment="seconds waited for the request budget"),
    Column("took", Float, nullable=False, comment="seconds from sending to the answer's headers"),
    Column("status", Integer, comment="empty where no answer came"),
    Column("remaining", Integer, comment="X-RateLimit-Remaining"),
    Column("request_id", String),
    Column("error", String),
)

SCANS = Table(
    "scans",
    METADATA,
    Column("scan", String(36), primary_key=True),
    Column("run", String(36), nullable=False),
    Column("connection", String, nullable=False),
    Column("stream", String, nullable=False),
    Column("day", Date, nullable=False),
    Column("address", String, nullable=False, comment="of the list, without its query"),
    Column("begun_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("status", String, nullable=False, comment="reading | read | failed | unproven"),
    Column("error", String, comment="in words, where it failed"),
    Column("proof", ProofJson, comment="empty where it was not read to an end"),
    Index("scans_of", "connection", "stream", "begun_at"),
)

PAGES = Table(
    "pages",
    METADATA,
    Column("scan", String(36), primary_key=True),
    Column("position", Integer, primary_key=True, comment="place in the chain, from 0"),
    Column("offset", Integer, nullable=False),
    Column("limit", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column(
        "sha256", String(64), nullable=False, comment="of the body as received: its archive name"
    ),
    Column("status", Integer, nullable=False),
    Column("request_id", String),
    Column("sent_at", UtcTime, nullable=False),
    Column("answered_at", UtcTime, nullable=False),
    Column("rate_limit", JSON, nullable=False, comment="rate-limit headers and Age, as sent"),
)

MANIFESTS = Table(
    "manifests",
    METADATA,
    Column("sequence", Number, primary_key=True, comment="the order in which they were written"),
    Column("connection", String, nullable=False),
    Column("stream", String, nullable=False),
    Column("day", Date, nullable=False),
    Column("number", Integer, nullable=False),
    Column("scan", String(36), nullable=False, unique=True),
    Column("file", String, nullable=False, comment="below archive/manifests"),
    Column("pages", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("proof", ProofJson, nullable=False),
    Column("written_at", UtcTime, nullable=False),
    UniqueConstraint("connection", "stream", "day", "number"),
    Index("manifests_named", "file"),
)

KEYS = Table(
    "keys",
    METADATA,
    Column("connection", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("key", String, comment="field that identifies a record; empty: the whole record does"),
    Column("scan", String(36), nullable=False, comment="the first scan, which pinned it"),
    Column("pinned_at", UtcTime, nullable=False),
)

IDENTITIES = Table(
    "identities",
    METADATA,
    Column("number", Integer, primary_key=True, comment="the newest of a connection counts"),
    Column("connection", String, nullable=False, index=True),
    Column("host", String, nullable=False),
    Column("digest", String(64), nullable=False, comment="of what the service says of us"),
    Column("words", String, nullable=False, comment="the same for people"),
    Column("pinned_at", UtcTime, nullable=False),
    Column("pinned_by", String, comment="who moved it; empty: the first landing did"),
)

VERSIONS = Table(
    "versions",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("run", String(36), nullable=False),
    Column("file", String, nullable=False, comment="below published/"),
    Column("holds", JSON, nullable=False, comment="manifest of every connection/stream in it"),
    Column("counts", JSON, nullable=False, comment="rows of every table in it"),
    Column("published_at", UtcTime, nullable=False),
    Column("sha256", String(64), nullable=False, comment="of the file"),
    Column("totals", JSON, nullable=False, comment="control totals of every table of records"),
    Column("made_of", JSON, nullable=False, comment="the folds behind every stream's tables"),
    Column("doubts", JSON, nullable=False, comment="the connection/stream that are in doubt"),
)

ROLLBACKS = Table(
    "rollbacks",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("newest", Integer, nullable=False, comment="the newest version at that time"),
    Column("opened", Integer, nullable=False, comment="the version that analysts open instead"),
    Column("by", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("reason", String, nullable=False),
)

REDACTIONS = Table(
    "redactions",
    METADATA,
    Column("old", String(64), primary_key=True, comment="the page as it was received"),
    Column("new", String(64), nullable=False, comment="the page that is read in its place"),
    Column("rows", JSON, nullable=False, comment="the records that are null in it"),
    Column("reason", String, nullable=False),
    Column("by", String, nullable=False),
    Column("at", UtcTime, nullable=False),
)

BASES = Table(
    "bases",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("file", String, nullable=False, comment="below archive/base"),
    Column("sha256", String(64), nullable=False),
    Column("manifests", JSON, nullable=False, comment="those that are folded in it, and dropped"),
    Column("by", String, nullable=False),
    Column("at", UtcTime, nullable=False),
)

# The request budget of an actor, shared by every process of this home (state/slots.py). Times are
# seconds of CLOCK_MONOTONIC, which mean something within one boot only, or of the server's clock.
BUDGETS = Table(
    "budgets",
    METADATA,
    Column("actor", String, primary_key=True, comment="host and actor, or the setting budget_key"),
    Column("boot", String, nullable=False, comment="the boot that the monotonic times belong to"),
    Column("learned", Integer, comment="X-RateLimit-Limit of an authenticated answer"),
    Column("learned_at", Float, nullable=False),
    Column("blocked_until", Float, nullable=False, comment="nobody sends before: a Retry-After"),
    Column("blocked_to", Float, nullable=False, comment="the same in Unix time, for a reboot"),
    Column("gap", Float, nullable=False, comment="learned seconds between requests; 0: none"),
    Column("hold", Float, nullable=False, comment="seconds that the last incident held the gap"),
    Column("ease_at", Float, nullable=False, comment="when the gap may become smaller"),
    Column("incident_at", Float, nullable=False, comment="when the last 429 was heard"),
    Column("sent_at", Float, nullable=False, comment="when the last slot was taken"),
    Column("turn", Float, nullable=False, comment="virtual time of the fair queue"),
    Column("nightly", Float, nullable=False, comment="when the lane is due, in virtual time"),
    Column("adhoc", Float, nullable=False),
    Column("foreign_uses", Integer, nullable=False, comment="answers that counted others' use too"),
    Column("foreign_at", Float, nullable=False, comment="the last of them, in Unix time"),
    Column("reserve", Integer, nullable=False, comment="requests per window left to others"),
    Column("reserve_at", Float, nullable=False, comment="when an answer last showed as many"),
    Column("peak", Integer, nullable=False, comment="what one answer showed beyond the reserve"),
    Column("peak_at", Float, nullable=False, comment="when it did"),
)

SLOTS = Table(
    "slots",
    METADATA,
    Column("number", Number, primary_key=True),
    Column("actor", String, nullable=False),
    Column(
        "owner",
        String,
        nullable=False,
        comment="its lock file in state/present, or its session's lock",
    ),
    Column("taken_at", Float, nullable=False),
    Column("answered_at", Float, comment="empty while the request is on its way"),
    Column("credit", Float, nullable=False, comment="seconds by which its path frees it earlier"),
    Column("lost", Boolean, nullable=False, comment="no answer came: it may count at any moment"),
    Index("slots_by_answer", "actor", "answered_at"),
)

TICKETS = Table(
    "tickets",
    METADATA,
    Column("number", Number, primary_key=True, comment="the order within a lane"),
    Column("actor", String, nullable=False),
    Column("owner", String, nullable=False, unique=True),
    Column("lane", String, nullable=False, comment="nightly | adhoc"),
    Column("looks_at", Float, nullable=False, comment="when its owner looks again, if it lives"),
)

DESCRIPTIONS = Table(
    "descriptions",
    METADATA,
    Column("connection", String, primary_key=True),
    Column("number", Integer, primary_key=True, comment="one more where it means something else"),
    Column("body", LargeBinary, nullable=False, comment="the interface description as served"),
    Column("base", String, nullable=False, comment="path of the service's address"),
    Column("first_seen_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime, nullable=False),
)

INTERFACE_CHANGES = Table(
    "interface_changes",
    METADATA,
    Column("connection", String, primary_key=True),
    Column("number", Integer, primary_key=True, comment="of the description that brought it"),
    Column("position", Integer, primary_key=True),
    Column("stream", String, comment="empty where no stream reads the path"),
    Column("path", String, nullable=False),
    Column("what", String, nullable=False),
    Column("before", String, nullable=False, comment="empty: it was not there"),
    Column("after", String, nullable=False, comment="empty: it is gone"),
    Column("meaning", String, nullable=False, comment="safe | breaking | opportunity"),
    Column("first_seen_at", UtcTime, nullable=False),
)

INTERFACE_DIFFERENCES = Table(
    "interface_differences",
    METADATA,
    Column("connection", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("field", String, nullable=False),
    Column("what", String, nullable=False),
    Column("described", String, nullable=False, comment="empty: it is not described"),
    Column("found", String, nullable=False, comment="empty: it did not come"),
    Column("manifest", String, nullable=False, comment="the reading that was compared"),
    Column("seen_at", UtcTime, nullable=False),
)

# What each target of alerts was last told (state/tellings.py); it quotes nothing of the service.
TELLINGS = Table(
    "tellings",
    METADATA,
    Column("target", String, primary_key=True, comment="log | webhook | mail"),
    Column("alert", String, primary_key=True, comment="a file of pipelines/alerts"),
    Column("about", String, primary_key=True, comment="a connection, its stream, or an actor"),
    Column("mark", String, nullable=False, comment="what of it makes it another matter"),
    Column("since", UtcTime, nullable=False, comment="when it was first told"),
    Column("told_at", UtcTime, nullable=False, comment="when it was last told"),
)
