"""The ledger's tables of what people said: decisions, breaks and what they did with them, closes.

Rows are only ever added, never changed; only sightings of a break follow what is found. Not here:
the tables of the work itself (tables).
"""

from sqlalchemy import Column, Date, Index, Integer, MetaData, String, Table

from pipelines.state.types import Exact, UtcTime

METADATA = MetaData()

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("kind", String, nullable=False, comment="state/decisions.py lists them"),
    Column("connection", String, nullable=False),
    Column("stream", String, nullable=False),
    Column("manifest", String, nullable=False, comment="from which it holds"),
    Column("subject", String, nullable=False, comment="empty: the stream as a whole"),
    Column("by", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("note", String, nullable=False),
)

# What rules found (state/breaks.py).
BREAKS = Table(
    "breaks",
    METADATA,
    Column("break_id", String, primary_key=True),
    Column("rule", String, nullable=False),
    Column("connection", String, nullable=False),
    Column("partner", String),
    Column("month", Date, comment="its first day"),
    Column("currency", String),
    Column("subject", String, nullable=False, comment="what the rule found it about"),
    Column("cause", String, nullable=False),
    Column("used_amount", Exact),
    Column("billed_amount", Exact),
    Column("difference", Exact),
    Column("rows", Integer, nullable=False),
    Column("first_seen", UtcTime, nullable=False, comment="as of which data it was first found"),
    Column("last_seen", UtcTime, nullable=False),
    Column("gone_at", UtcTime, comment="as of which data it is no longer found; empty: it stands"),
    Column("returns", Integer, nullable=False, comment="how often it was found again after that"),
)

BREAK_ACTS = Table(
    "break_acts",
    METADATA,
    Column("number", Integer, primary_key=True, comment="the newest of a break counts"),
    Column("break_id", String, nullable=False, index=True),
    Column("act", String, nullable=False, comment="assign | pend | resolve | reopen"),
    Column("by", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("owner", String, nullable=False, comment="empty: who it was before"),
    Column("reason", String, nullable=False, comment="of resolve: state/breaks.py lists them"),
    Column("note", String, nullable=False),
    Column("amount", Exact, comment="the difference at that time"),
    Column("rows", Integer, nullable=False, comment="of the break at that time"),
    Column("returns", Integer, nullable=False, comment="of the break at that time"),
)

# Months that were signed off (state/closes.py), and every change of them since, each posted once.
CLOSES = Table(
    "closes",
    METADATA,
    Column("sequence", Integer, primary_key=True, comment="the newest of a month counts"),
    Column("month", Date, nullable=False, comment="its first day"),
    Column("number", Integer, nullable=False, comment="of the frozen copy of the month"),
    Column("act", String, nullable=False, comment="close | reopen"),
    Column("preparer", String, nullable=False, comment="of reopen: who did it"),
    Column("reviewer", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("note", String, nullable=False),
    Column("sha256", String(64), nullable=False, comment="of the frozen copy's manifest"),
    Column("records", Integer, nullable=False, comment="used and billed, in the frozen copy"),
)

CORRECTIONS = Table(
    "corrections",
    METADATA,
    Column("sequence", Integer, primary_key=True),
    Column("month", Date, nullable=False),
    Column("number", Integer, nullable=False, comment="of the frozen copy that it corrects"),
    Column("connection", String),
    Column("side", String, nullable=False, comment="usage | billing"),
    Column("id", String),
    Column("partner", String),
    Column("currency", String),
    Column("amount_then", Exact),
    Column("amount_now", Exact),
    Column("difference", Exact),
    Column("why", String, nullable=False, comment="restated | new | gone | back"),
    Column("posted_to", Date, nullable=False, comment="the open month that takes it"),
    Column("seen_at", UtcTime, nullable=False, comment="as of which data it was first found"),
    Index("corrections_of", "month", "number"),
)
