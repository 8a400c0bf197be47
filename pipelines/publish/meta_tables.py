"""Tables and views of schema `meta`: statements that create them, and comments."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class MetaTable:
    """One table: what it holds, and its columns as type and comment."""

    name: str
    comment: str
    columns: dict[str, tuple[str, str]]

    @property
    def ddl(self) -> str:
        """The statement that creates the table."""
        typed = ", ".join(f"{name} {kind}" for name, (kind, _comment) in self.columns.items())
        return f"CREATE TABLE IF NOT EXISTS meta.{self.name} ({typed})"

    def added(self, existing: frozenset[str]) -> list[str]:
        """Return the statements that add the columns that an older version lacks."""
        return [
            f"ALTER TABLE meta.{self.name} ADD COLUMN {name} {kind}"
            for name, (kind, _comment) in self.columns.items()
            if name not in existing
        ]


_TEXTS: Final = {
    "connection": "Connection that read the list.",
    "stream": "Name of the list, and of its tables.",
}
_LIST: Final = {name: ("VARCHAR", text) for name, text in _TEXTS.items()}

REQUESTS: Final = MetaTable(
    "requests",
    "Every request of each scan that this version holds. Rows name theirs by `_scan_id` and "
    "`_page`.",
    {
        "scan_id": ("VARCHAR", "The scan."),
        **_LIST,
        "page": ("BIGINT", "Number of the request in the scan file, from 1; `_page` of rows."),
        "purpose": ("VARCHAR", "Why it was sent: page, head, length, behind; stop is no request."),
        "requested_offset": ("BIGINT", "Offset that was asked for."),
        "requested_limit": ("BIGINT", "Page size that was asked for."),
        "status": ("BIGINT", "HTTP status. NULL: no answer."),
        "sent_at": ("TIMESTAMPTZ", "When the request was sent."),
        "received_at": ("TIMESTAMPTZ", "When the answer was complete."),
        "request_id": ("VARCHAR", "The service's own identifier of the request."),
        "rows": ("BIGINT", "Records of the page that were loaded from it."),
        "rows_conflicting": ("BIGINT", "Records of the page that went to quarantine as conflicts."),
        "bytes": ("BIGINT", "Size of the answer's body. NULL: there is none."),
        "error": ("VARCHAR", "Why the request has no page. NULL: it has one."),
    },
)
RUNS: Final = MetaTable(
    "runs",
    "Every sync as of this build.",
    {
        "run_id": ("VARCHAR", "The run."),
        "connection": ("VARCHAR", "Connection that was read."),
        "trigger": ("VARCHAR", "What started it: command, schedule or backfill."),
        "scheduled_at": ("TIMESTAMPTZ", "Tick of the schedule. NULL: started by a person."),
        "started_at": ("TIMESTAMPTZ", "When it began."),
        "ended_at": ("TIMESTAMPTZ", "When it ended. NULL: it runs, or its process was killed."),
        "outcome": ("VARCHAR", "complete, partial, failed or interrupted. NULL: as ended_at."),
        "message": ("VARCHAR", "Why it ended so."),
        "requests": ("BIGINT", "Requests sent."),
        "rate_limited": ("BIGINT", "Requests answered with status 429."),
    },
)
FINDINGS: Final = MetaTable(
    "findings",
    "What a person should know or do, as of this build. `partner-sync status` shows the live list.",
    {
        "code": ("VARCHAR", "Kind of finding; docs/failures.md explains each."),
        **_LIST,
        "subject": ("VARCHAR", "What exactly it is about. Empty: the whole stream."),
        "severity": ("VARCHAR", "info, warning or error."),
        "message": ("VARCHAR", "What happened and what it means for the data."),
        "remedy": ("VARCHAR", "Command that fixes it."),
        "blocks": ("BOOLEAN", "Whether data waits for a person."),
        "first_seen": ("TIMESTAMPTZ", "When it was found first."),
        "last_seen": ("TIMESTAMPTZ", "When it was found last."),
        "cleared_at": ("TIMESTAMPTZ", "When it was over. NULL: it holds."),
    },
)
DECISIONS: Final = MetaTable(
    "decisions",
    "What people decided, with name and reason, as of this build.",
    {
        "number": ("BIGINT", "Order of the decisions."),
        "decided_at": ("TIMESTAMPTZ", "When."),
        "person": ("VARCHAR", "Who."),
        "kind": ("VARCHAR", "approve, reject, rollback or accept_identity."),
        "subject": ("VARCHAR", "The scan, version or connection that was decided on."),
        "reason": ("VARCHAR", "Why."),
        "details": ("VARCHAR", "Further values, as JSON."),
    },
)
VERSIONS: Final = MetaTable(
    "versions",
    "Versions of the warehouse, as of this build; the last one is this version itself.",
    {
        "number": ("BIGINT", "Number of the version; part of its file's name."),
        "status": ("VARCHAR", "building (this version itself), published or deleted."),
        "base": ("BIGINT", "Version that it was built from. NULL: from scans alone."),
        "created_at": ("TIMESTAMPTZ", "When its build began."),
        "published_at": ("TIMESTAMPTZ", "When it was published. NULL: not before this build."),
        "note": ("VARCHAR", "Why it was built."),
    },
)
LOAD_FINDINGS: Final = MetaTable(
    "load_findings",
    "What each load had to say, such as new columns: several rows per scan, or none.",
    {
        "scan_id": ("VARCHAR", "The scan that was loaded."),
        "code": ("VARCHAR", "Kind of finding; docs/failures.md explains each."),
        "severity": ("VARCHAR", "info, warning or error."),
        **_LIST,
        "subject": ("VARCHAR", "What exactly it is about. Empty: the whole stream."),
        "message": ("VARCHAR", "What happened and what it means for the data."),
        "remedy": ("VARCHAR", "What to do about it."),
        "blocks": ("BOOLEAN", "Whether data waits for a person."),
    },
)
APPENDED: Final = (REQUESTS, LOAD_FINDINGS)
REPLACED: Final = (RUNS, FINDINGS, DECISIONS, VERSIONS)
TABLES: Final = (*APPENDED, *REPLACED)

_PROOF: Final = {
    **_TEXTS,
    "scan_id": "The scan; `_scan_id` of the rows that it brought.",
    "complete": "Whether every row that existed throughout the scan is present.",
    "method": "What the proof rests on: one_page, overlapping_pages or counted.",
    "rows": "Records of the list, each counted once.",
    "repeated": "Copies of records that were read again and set aside.",
    "not_seen": "Rows that the list had beyond those read. NULL: not known.",
    "requests": "Requests sent for the scan, refused ones too.",
    "reason": "Why the scan is not complete. Empty where it is.",
    "started_at": "When the scan began.",
    "ended_at": "When the scan ended.",
    "sentence": "The proof in words.",
}
# Views of ours, and tables that loading writes: their columns and what they mean.
OTHERS: Final = {
    "freshness": {
        "": "How fresh the rows of each list are: one row per connection and stream.",
        **_TEXTS,
        "last_scan_id": "Newest scan that this version holds.",
        "last_scan_ended_at": "When that scan ended.",
        "last_scan_complete": "Whether that scan is complete. If not, some rows may be older.",
        "last_complete_scan_id": "Newest complete scan. NULL: none is complete.",
        "last_complete_at": "When it ended: the rows are proven complete for this moment.",
        "rows": "Rows that the newest complete scan counted.",
        "age_minutes": "Minutes from last_complete_at until now, the time of your query.",
    },
    "completeness": {
        "": "What is proven of each scan that this version holds: one row per scan.",
        **_PROOF,
        "primary_key": "Field that identifies a record. NULL: its whole content does.",
    },
    "loads": {
        "": "Every load in its order: the proof of the scan and what changed, in rows.",
        **_PROOF,
        "key": "Field that identifies a record. NULL: its whole content does.",
        "day": "UTC date on which the scan began.",
        "valid_time": "Time of the changes: `_valid_from` and `_valid_to` of the rows.",
        "new": "Rows that were new or came back.",
        "changed": "Rows of which a new version began.",
        "deleted": "Rows that the list did not have any more.",
        "unchanged": "Rows that stayed as they were.",
        "quarantined": "Records that went to quarantine.records.",
    },
    "columns": {
        "": "Every column of data, its type and the field of the record that it holds.",
        "stream": "Name of the list.",
        "table_name": "Table in the schemas history and current.",
        "column_name": "Column. NULL: the field had no value yet.",
        "part": "What of the field it holds: value, offset (of a time), count (of a list), none.",
        "type": "Type of the column.",
        "path": "The field in the record, as a JSON path.",
        "steps": "The same path as a JSON array.",
        "kind": "What the field holds, as loading sees it.",
        "scale": "Digits behind the decimal point.",
        "digits": "Digits before the decimal point.",
        "first_scan_id": "Scan that had the field first.",
        "position": "Order of the columns.",
    },
}
COMPLETENESS: Final = """
CREATE OR REPLACE VIEW meta.completeness AS
SELECT
    loads.scan_id,
    loads.connection,
    loads.stream,
    loads.complete,
    loads.method,
    loads.rows,
    loads.repeated,
    loads.not_seen,
    loads.reason,
    loads.requests,
    loads.key AS primary_key,
    loads.started_at,
    loads.ended_at,
    loads.sentence
FROM meta.loads AS loads
"""
FRESHNESS: Final = """
CREATE OR REPLACE VIEW meta.freshness AS
SELECT
    loads.connection,
    loads.stream,
    max_by(loads.scan_id, loads.valid_time) AS last_scan_id,
    max(loads.ended_at) AS last_scan_ended_at,
    max_by(loads.complete, loads.valid_time) AS last_scan_complete,
    max_by(loads.scan_id, loads.valid_time) FILTER (loads.complete) AS last_complete_scan_id,
    max(loads.ended_at) FILTER (loads.complete) AS last_complete_at,
    max_by(loads.rows, loads.valid_time) FILTER (loads.complete) AS rows,
    date_diff('minute', max(loads.ended_at) FILTER (loads.complete), now()) AS age_minutes
FROM meta.loads AS loads
GROUP BY loads.connection, loads.stream
"""
VIEWS: Final = (COMPLETENESS, FRESHNESS)
