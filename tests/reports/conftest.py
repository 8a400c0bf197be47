"""A published file with the tables that reconciliation writes: several currencies, hostile names.

Small and made by hand, so that every figure of a report can be reckoned beside it.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pipelines import reports
from pipelines.settings import Home

HOSTILE = "</script><script>window.hit=1</script>"
META = """
CREATE SCHEMA meta;
CREATE TABLE meta.folds (number BIGINT, run VARCHAR, connection VARCHAR, stream VARCHAR,
    manifest VARCHAR);
INSERT INTO meta.folds VALUES (1, 'r1', 'default', 'usage', 'u.json'),
    (2, 'r1', 'default', 'billing', 'b.json');
CREATE TABLE meta.freshness (connection VARCHAR, stream VARCHAR, rows BIGINT, missing BIGINT,
    quarantined BIGINT, manifest VARCHAR, day DATE, grade VARCHAR, ended_at TIMESTAMPTZ,
    published_at TIMESTAMPTZ, version BIGINT);
INSERT INTO meta.freshness VALUES
    ('default', 'usage', 9, 1, 0, 'u.json', '2026-11-21', 'COMPLETE', '2026-11-21T02:10:00Z',
     '2026-11-21T03:12:00Z', 42),
    ('default', 'billing', 8, 0, 2, 'b.json', '2026-11-21', 'PARTIAL',
     '2026-11-21T02:05:00Z', '2026-11-21T03:12:00Z', 42);
CREATE TABLE meta.proofs (connection VARCHAR, stream VARCHAR, manifest VARCHAR, sentence VARCHAR,
    in_force BOOLEAN, doubt VARCHAR);
INSERT INTO meta.proofs VALUES ('default', 'usage', 'u.json', 'usage: COMPLETE', true, NULL),
    ('default', 'billing', 'b.json', 'billing: PARTIAL', true, 'billing: PARTIAL');
CREATE TABLE meta.runs (run VARCHAR, connection VARCHAR, begun_at TIMESTAMPTZ, outcome VARCHAR);
INSERT INTO meta.runs VALUES ('r1', 'default', '2026-11-21T02:00:00Z', 'published'),
    ('r0', 'default', '2026-11-20T02:00:00Z', 'failed'), ('old', 'default', '2026-01-01', 'failed');
CREATE TABLE meta.requests (run VARCHAR, stream VARCHAR, status BIGINT, waited_ms BIGINT);
INSERT INTO meta.requests VALUES ('r1', 'usage', 200, 1500), ('r1', 'usage', 429, 800),
    ('r1', NULL, 200, 0), ('r0', 'usage', 200, 0);
"""
RECONCILIATION = """
CREATE SCHEMA reconciliation;
CREATE TABLE reconciliation.rules (rule VARCHAR, question VARCHAR, severity VARCHAR,
    evaluated BOOLEAN, not_evaluated VARCHAR, breaks BIGINT, means VARCHAR, remedy VARCHAR);
INSERT INTO reconciliation.rules VALUES
    ('amount_mismatch', 'Do they agree?', 'high', true, NULL, 2, 'The amounts differ.', 'Ask.'),
    ('quantity_mismatch', 'Same?', 'medium', false, 'usage.quantity is not mapped', 0, 'm', 'r');
CREATE TABLE reconciliation.summary (connection VARCHAR, month DATE, partner VARCHAR,
    partner_name VARCHAR, currency VARCHAR, used_rows BIGINT, billed_rows BIGINT,
    used_quantity DECIMAL(38, 3), expected_amount DECIMAL(38, 3), used_amount DECIMAL(38, 3),
    billed_amount DECIMAL(38, 3), variance DECIMAL(38, 3), variance_percent DECIMAL(18, 4),
    matched_share_rows DECIMAL(18, 4), matched_share_value DECIMAL(18, 4), open_breaks BIGINT,
    verdict VARCHAR, not_evaluated VARCHAR);
INSERT INTO reconciliation.summary VALUES
    ('default', '2026-09-01', 'p1', $hostile, 'EUR', 2, 2, 5, 30, 30.10, 30.11, 0.01, 0.0332,
     0.5, 0.5, 1, 'out of balance', NULL),
    ('default', '2026-09-01', 'p2', 'Beta & $x$ "Co"', 'EUR', 1, 1, 1, 7, 7, 7, 0, 0, 1, 1, 0,
     'balanced', NULL),
    ('default', '2026-09-01', 'p2', 'Beta & $x$ "Co"', 'JPY', 1, 0, 1, 16155812057580869,
     16155812057580869, 0, -16155812057580869, -100, 0, 0, 1, 'out of balance', NULL),
    ('default', '2026-10-01', 'p1', $hostile, 'EUR', NULL, 1, NULL, NULL, NULL, 4.125, NULL, NULL,
     NULL, NULL, 0, 'tentative', 'usage.amount is not mapped');
CREATE TABLE reconciliation.partner_rollforward (connection VARCHAR, partner VARCHAR,
    currency VARCHAR, month DATE, opening DECIMAL(38, 3), rated DECIMAL(38, 3), late DECIMAL(38, 3),
    restated DECIMAL(38, 3), billed DECIMAL(38, 3), adjustments DECIMAL(38, 3),
    closing DECIMAL(38, 3), closing_direct DECIMAL(38, 3), difference DECIMAL(38, 3));
INSERT INTO reconciliation.partner_rollforward VALUES
    ('default', 'p1', 'EUR', '2026-09-01', 1, 30, 0.09, 0.01, 30.11, 0, 0.99, 0.99, 0),
    ('default', 'p2', 'EUR', '2026-09-01', 0, 7, 0, 0, 7, 0, 0, 0, 0),
    ('default', 'p3', 'KWD', '2026-09-01', 0, 0.001, 0, 0, 0, 0, 0.001, 0.001, 0);
CREATE TABLE reconciliation.breaks (break_id VARCHAR, rule VARCHAR, severity VARCHAR,
    connection VARCHAR, partner VARCHAR, partner_name VARCHAR, month DATE, currency VARCHAR,
    subject VARCHAR, cause VARCHAR, used_amount DECIMAL(38, 3), billed_amount DECIMAL(38, 3),
    difference DECIMAL(38, 3), rows BIGINT, first_seen TIMESTAMPTZ, last_seen TIMESTAMPTZ,
    age_days BIGINT, bucket VARCHAR, state VARCHAR, owner VARCHAR, note VARCHAR,
    resolved_by VARCHAR, artefact BOOLEAN, artefact_reason VARCHAR);
INSERT INTO reconciliation.breaks VALUES
    ('Baaaaaaaaaaaa', 'amount_mismatch', 'high', 'default', 'p1', $hostile, '2026-09-01', 'EUR',
     'u1', 'amount', 30.10, 30.11, 0.01, 2, '2026-11-20', '2026-11-21', 1, '0-1', 'OPEN', NULL,
     NULL, NULL, false, NULL),
    ('Bbbbbbbbbbbbb', 'usage_without_billing', 'high', 'default', 'p2', 'Beta & $x$ "Co"',
     '2026-09-01', 'JPY', 'u2', 'missing', 16155812057580869, 0, -16155812057580869, 30,
     '2026-10-01', '2026-11-21', 51, '>30', 'ASSIGNED', 'mira', 'asked them', NULL, false, NULL),
    ('Bcccccccccccc', 'duplicate_billing', 'low', 'default', 'p2', 'Beta & $x$ "Co"', '2026-09-01',
     'EUR', 'b9', 'exact', 0, 7, 7, 2, '2026-11-21', '2026-11-21', 0, '0-1', 'OPEN', NULL, NULL,
     NULL, true, 'at a repaired seam'),
    ('Bdddddddddddd', 'amount_mismatch', 'high', 'default', 'p1', 'gone', '2026-08-01', 'EUR', 'u3',
     'amount', 1, 2, 1, 2, '2026-09-01', '2026-09-02', 80, '>30', 'RESOLVED', NULL, NULL,
     'evidence', false, NULL);
CREATE TABLE reconciliation.break_rows (break_id VARCHAR, side VARCHAR, id VARCHAR,
    amount DECIMAL(38, 3), quantity DECIMAL(38, 3), page VARCHAR, row BIGINT);
INSERT INTO reconciliation.break_rows VALUES
    ('Baaaaaaaaaaaa', 'usage', $hostile, 30.10, 2, 'ab12', 3),
    ('Baaaaaaaaaaaa', 'billing', 'b1', 30.11, 2, 'cd34', 0);
INSERT INTO reconciliation.break_rows
    SELECT 'Bbbbbbbbbbbbb', 'usage', 'u' || i, 1, 1, 'ef56', i FROM range(30) AS r(i);
CREATE TABLE reconciliation.completeness (connection VARCHAR, stream VARCHAR, day DATE,
    grade VARCHAR, sentence VARCHAR, rows BIGINT, ended_at TIMESTAMPTZ, doubt VARCHAR);
INSERT INTO reconciliation.completeness VALUES
    ('default', 'usage', '2026-11-20', 'COMPLETE', 'usage: of before', 5, '2026-11-20', NULL),
    ('default', 'usage', '2026-11-21', 'COMPLETE', 'usage: COMPLETE', 9,
     '2026-11-21T02:10:00Z', NULL),
    ('default', 'billing', '2026-11-21', 'PARTIAL', 'billing: PARTIAL', 8,
     '2026-11-21T02:05:00Z', 'in doubt');
"""
CLOSES = """
CREATE TABLE reconciliation.closes (month DATE, number INTEGER, state VARCHAR, said VARCHAR);
INSERT INTO reconciliation.closes VALUES
    ('2026-09-01', 1, 'OUTDATED', '3 records restated since sign-off, net +12.40');
"""


def made(file: Path, *scripts: str) -> duckdb.DuckDBPyConnection:
    """Return a database file of these tables, and the reports of them."""
    database = duckdb.connect(file)
    database.execute("SET TimeZone = 'UTC'")
    hostile = "'" + HOSTILE + "'"
    for script in scripts:
        database.execute(script.replace("$hostile", hostile))
    database.begin()
    reports.write(database)
    database.commit()
    return database


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database in which everything is there."""
    with made(tmp_path_factory.mktemp("whole") / "w.duckdb", META, RECONCILIATION, CLOSES) as it:
        yield it


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home in which version 42 is published, everything in it."""
    place = Home(tmp_path_factory.mktemp("reports") / "home")
    place.prepare()
    file = place.published / "warehouse.v00000042.duckdb"
    made(file, META, RECONCILIATION, CLOSES).close()
    place.link.symlink_to(file)
    return place
