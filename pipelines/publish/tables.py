"""Tables and views of schema `meta` that a build writes. Loading writes `loads` and `columns`."""

from typing import Final

APPENDED: Final = """
CREATE SCHEMA IF NOT EXISTS meta;
CREATE TABLE IF NOT EXISTS meta.requests (
    scan_id VARCHAR, connection VARCHAR, stream VARCHAR, page BIGINT, purpose VARCHAR,
    requested_offset BIGINT, requested_limit BIGINT, status BIGINT, sent_at TIMESTAMPTZ,
    received_at TIMESTAMPTZ, request_id VARCHAR, rows BIGINT, rows_conflicting BIGINT,
    bytes BIGINT, error VARCHAR
);
CREATE TABLE IF NOT EXISTS meta.load_findings (
    scan_id VARCHAR, code VARCHAR, severity VARCHAR, connection VARCHAR, stream VARCHAR,
    subject VARCHAR, message VARCHAR, remedy VARCHAR, blocks BOOLEAN
);
"""
# Rows of the metadata database as of the build; columns are those of the mapped classes.
REPLACED: Final = """
CREATE OR REPLACE TABLE meta.runs (
    run_id VARCHAR, connection VARCHAR, trigger VARCHAR, scheduled_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, outcome VARCHAR, message VARCHAR,
    requests BIGINT, rate_limited BIGINT
);
CREATE OR REPLACE TABLE meta.findings (
    code VARCHAR, connection VARCHAR, stream VARCHAR, subject VARCHAR, severity VARCHAR,
    message VARCHAR, remedy VARCHAR, blocks BOOLEAN, first_seen TIMESTAMPTZ,
    last_seen TIMESTAMPTZ, cleared_at TIMESTAMPTZ
);
CREATE OR REPLACE TABLE meta.decisions (
    number BIGINT, decided_at TIMESTAMPTZ, person VARCHAR, kind VARCHAR, subject VARCHAR,
    reason VARCHAR, details VARCHAR
);
CREATE OR REPLACE TABLE meta.versions (
    number BIGINT, status VARCHAR, base BIGINT, created_at TIMESTAMPTZ,
    published_at TIMESTAMPTZ, note VARCHAR
);
"""
NOT_SHOWN: Final = frozenset({"owner", "file", "sha256"})  # of the mapped classes
VIEWS: Final = """
CREATE OR REPLACE VIEW meta.completeness AS
SELECT loads.* EXCLUDE (day, valid_time, new, changed, deleted, unchanged, quarantined)
    RENAME (key AS primary_key)
FROM meta.loads AS loads;
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
GROUP BY loads.connection, loads.stream;
"""
