"""What tables, views and columns mean: one text each, written into every version as comments.

A column is looked up by its whole name first, then by its own, which holds in every table of ours.
"""

from typing import Final

LINES: Final = """
_connection: Connection that read the record.
_key: What identifies the record: its primary key, or a digest of its content.
_parent_key: `_key` of the record that the item belongs to.
_index: Place of the item in its array, from 0.
_parent_index: `_index` of the item that this item belongs to.
_digest: First 8 bytes of the SHA-256 of the record as it was sent.
_valid_from: End of the scan that brought this version of the record.
_valid_to: End of the scan that ended this version. NULL: it holds.
_end_reason: Why the version ended: changed or deleted.
_scan_id: Scan that brought this version; see meta.requests.
_page: Number of the request that brought it; `page` in meta.requests.
_row: Place of the record in that page, from 0.
_extra: What fits no column, as JSON; numbers as text, exactly as sent.
connection: Connection that read the list.
stream: Name of the list, and of its tables.
scan_id: The scan; `_scan_id` of the rows that it brought.
page: Number of the request in the scan file, from 1; `_page` of rows.
requests: Requests sent, refused ones too.
started_at: When it began.
ended_at: When it ended.
code: Kind of finding; docs/failures.md explains each.
severity: info, warning or error.
subject: What exactly it is about. Empty: the whole stream.
message: What happened and what it means for the data.
remedy: Command that fixes it, or what to do about it.
blocks: Whether data waits for a person.
reason: Why. Empty for a complete scan.
rows: Records of the list, each counted once.
key: Primary key: field that identifies a record. NULL: its whole content does.
primary_key: Field that identifies a record. NULL: its whole content does.
complete: Whether every row that existed throughout the scan is present.
method: What the proof rests on: one_page, overlapping_pages or counted.
repeated: Copies of records that were read again and set aside.
not_seen: Rows that the list had beyond those read. NULL: not known.
sentence: The proof in words.
meta.requests: Every request of each scan here. Rows name theirs by `_scan_id` and `_page`.
meta.requests.purpose: Why it was sent: page, head, length, behind; stop is no request.
meta.requests.requested_offset: Offset that was asked for.
meta.requests.requested_limit: Page size that was asked for.
meta.requests.status: HTTP status. NULL: no answer.
meta.requests.sent_at: When the request was sent.
meta.requests.received_at: When the answer was complete.
meta.requests.request_id: The service's own identifier of the request.
meta.requests.rows: Records of the page that were loaded from it.
meta.requests.rows_conflicting: Records of the page that went to quarantine as conflicts.
meta.requests.bytes: Size of the answer's body. NULL: there is none.
meta.requests.error: Why the request has no page. NULL: it has one.
meta.load_findings: What each load had to say, such as new columns: several rows per scan, or none.
meta.findings: What needs attention, as of this build. `partner-sync status` shows the live list.
meta.findings.first_seen: When it was found first.
meta.findings.last_seen: When it was found last.
meta.findings.cleared_at: When it was over. NULL: it holds.
meta.runs: Every sync as of this build.
meta.runs.run_id: The run.
meta.runs.connection: Connection that was read.
meta.runs.trigger: What started it: command, schedule or backfill.
meta.runs.scheduled_at: Tick of the schedule. NULL: started by a person.
meta.runs.ended_at: When it ended. NULL: it runs, or its process was killed.
meta.runs.outcome: complete, partial, failed or interrupted. NULL: as ended_at.
meta.runs.message: Why it ended so.
meta.runs.rate_limited: Requests answered with status 429.
meta.decisions: What people decided, with name and reason, as of this build.
meta.decisions.number: Order of the decisions.
meta.decisions.decided_at: When.
meta.decisions.person: Who.
meta.decisions.kind: approve, reject, rollback or accept_identity.
meta.decisions.subject: The scan, version or connection that was decided on.
meta.decisions.reason: Why.
meta.decisions.details: Further values, as JSON.
meta.versions: Versions of the warehouse, as of this build; the last one is this version itself.
meta.versions.number: Number of the version; part of its file's name.
meta.versions.status: building (this version itself), published or deleted.
meta.versions.base: Version that it was built from. NULL: from scans alone.
meta.versions.created_at: When its build began.
meta.versions.published_at: When it was published. NULL: not before this build.
meta.versions.note: Why it was built.
meta.completeness: What is proven of each scan that this version holds: one row per scan.
meta.loads: Every load in its order: the proof of the scan and what changed, in rows.
meta.loads.day: UTC date on which the scan began.
meta.loads.valid_time: Time of the changes: `_valid_from` and `_valid_to` of the rows.
meta.loads.new: Rows that were new or came back.
meta.loads.changed: Rows of which a new version began.
meta.loads.deleted: Rows that the list did not have any more.
meta.loads.unchanged: Rows that stayed as they were.
meta.loads.quarantined: Records that went to quarantine.records.
meta.freshness: How fresh the rows of each list are: one row per connection and stream.
meta.freshness.last_scan_id: Newest scan that this version holds.
meta.freshness.last_scan_ended_at: When that scan ended.
meta.freshness.last_scan_complete: Whether that scan is complete. If not, some rows may be older.
meta.freshness.last_complete_scan_id: Newest complete scan. NULL: none is complete.
meta.freshness.last_complete_at: When it ended: the rows are proven complete for this moment.
meta.freshness.rows: Rows that the newest complete scan counted.
meta.freshness.age_minutes: Minutes from last_complete_at until now, the time of your query.
meta.columns: Every column of data, its type and the field of the record that it holds.
meta.columns.table_name: Table in the schemas history and current.
meta.columns.column_name: Column. NULL: the field had no value yet.
meta.columns.part: What of the field it holds: value, offset (of a time), count (of a list), none.
meta.columns.type: Type of the column.
meta.columns.path: The field in the record, as a JSON path.
meta.columns.steps: The same path as a JSON array.
meta.columns.kind: What the field holds, as loading sees it.
meta.columns.scale: Digits behind the decimal point.
meta.columns.digits: Digits before the decimal point.
meta.columns.first_scan_id: Scan that had the field first.
meta.columns.position: Order of the columns.
quarantine.records: Records that no table can hold, with the reason.
quarantine.records.row: Place of the record in that page, from 0.
quarantine.records.key: Its primary key. NULL: it cannot be read.
quarantine.records.reason: Why no table can hold it.
quarantine.records.raw: The record as it was sent.
"""
TEXTS: Final = dict(line.split(": ", 1) for line in LINES.splitlines() if line)
# Of the tables of each list, and of what they hold of a record.
OF_LISTS: Final = {  # schema -> what tables of arrays hold, and tables of records
    "history": (
        "Items of array {array} of list {table}, for every version of each record.",
        "Every version of every record of list {table}, with the time in which it held.",
    ),
    "current": (
        "Items of array {array} of list {table}, as they were read last.",
        "Records of list {table} as they were read last.",
    ),
}
OTHER: Final = "Table {table} of schema {schema}."
AS_OF: Final = "Rows of list {table} as they were known at a moment."
OFFSET: Final = "UTC offset of {column} as it was sent."
COUNT: Final = "Number of items of {column}. NULL: the record has no such array."
FIELD: Final = "Field {column} of the record."
