"""All tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables."""
    _create_runs()
    _create_scans()
    _create_lists()
    _create_rate_limit()
    _create_findings()
    _create_decisions()
    _create_versions()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(36), primary_key=True),
        sa.Column("connection", sa.String, nullable=False),
        sa.Column("trigger", sa.String, nullable=False),
        sa.Column("scheduled_at", TIME),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("outcome", sa.String),
        sa.Column("message", sa.String),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("rate_limited", sa.Integer, nullable=False),
    )
    op.create_index("runs_by_connection", "runs", ["connection", "started_at"])


def _create_scans() -> None:
    op.create_table(
        "scans",
        sa.Column("scan_id", sa.String(36), primary_key=True),
        sa.Column("run_id", sa.String(36), nullable=False, index=True),
        sa.Column("connection", sa.String, nullable=False),
        sa.Column("stream", sa.String, nullable=False),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("complete", sa.Boolean),
        sa.Column("rows", sa.Integer),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("sha256", sa.String),
        sa.Column("reason", sa.String),
    )
    op.create_index("scans_by_list", "scans", ["connection", "stream", "started_at"])


def _create_lists() -> None:
    op.create_table(
        "lists",
        sa.Column("connection", sa.String, primary_key=True),
        sa.Column("stream", sa.String, primary_key=True),
        sa.Column("key", sa.String),
        sa.Column("key_decided", sa.Boolean, nullable=False),
        sa.Column("length", sa.Integer),
        sa.Column("stable_order", sa.Boolean, nullable=False),
        sa.Column("scan_id", sa.String),
    )
    op.create_table(
        "identities",
        sa.Column("connection", sa.String, primary_key=True),
        sa.Column("base_url", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("identity", sa.JSON, nullable=False),
        sa.Column("pinned_at", TIME, nullable=False),
    )


def _create_rate_limit() -> None:
    op.create_table(
        "rate_limit_actors",
        sa.Column("actor", sa.String, primary_key=True),
        sa.Column("limit", sa.Integer),
        sa.Column("blocked_until", sa.Double, nullable=False),
        sa.Column("caution_until", sa.Double, nullable=False),
        sa.Column("caution_seconds", sa.Double, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
    )
    op.create_table(
        "rate_limit_slots",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("sent_at", sa.Double),
        sa.Column("answered_at", sa.Double),
        sa.Column("held_until", sa.Double),
        sa.Column("credit", sa.Double, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("rate_limit_slots_by_actor", "rate_limit_slots", ["actor", "number"])


def _create_findings() -> None:
    op.create_table(
        "findings",
        sa.Column("code", sa.String, primary_key=True),
        sa.Column("connection", sa.String, primary_key=True),
        sa.Column("stream", sa.String, primary_key=True),
        sa.Column("subject", sa.String, primary_key=True),
        sa.Column("severity", sa.String, nullable=False),
        sa.Column("message", sa.String, nullable=False),
        sa.Column("remedy", sa.String, nullable=False),
        sa.Column("blocks", sa.Boolean, nullable=False),
        sa.Column("first_seen", TIME, nullable=False),
        sa.Column("last_seen", TIME, nullable=False),
        sa.Column("cleared_at", TIME),
    )


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("decided_at", TIME, nullable=False),
        sa.Column("person", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )


def _create_versions() -> None:
    op.create_table(
        "versions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("base", sa.Integer),
        sa.Column("file", sa.String, nullable=False),
        sa.Column("sha256", sa.String),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("published_at", TIME),
        sa.Column("note", sa.String, nullable=False),
    )
    op.create_table(
        "api_specs",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("connection", sa.String, primary_key=True),
        sa.Column("first_seen", TIME, nullable=False),
        sa.Column("last_seen", TIME, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
