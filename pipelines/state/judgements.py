"""The ledger's tables of what people said: decisions, and what they did with breaks.

Rows are only ever added, never changed; only sightings of a break follow what is found. Not here:
the tables of the work itself (tables).
"""

from sqlalchemy import Column, Date, Integer, MetaData, String, Table

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
