"""A home with one published file whose values are hard to carry: wide, tiny, empty, hostile."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from pipelines import destinations
from pipelines.clock import SYSTEM
from pipelines.destinations import Export
from pipelines.settings import Home

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
TABLES = """
CREATE SCHEMA current; CREATE SCHEMA past; CREATE SCHEMA history; CREATE SCHEMA meta;
CREATE TABLE current.usage (
    _connection VARCHAR, amount DECIMAL(38, 2), rate DECIMAL(18, 8), quantity BIGINT, paid BOOLEAN,
    used_at TIMESTAMPTZ, day DATE, name VARCHAR, _digest BLOB
);
INSERT INTO current.usage VALUES
    ('default', 12345678901234567890123456789012345.67, 0.00000001, 9007199254740993, true,
     '2026-11-21T10:00:00.123456Z', '2026-11-21', '=1+1', '\\xAA\\x00'::BLOB),
    ('default', -0.10, -0.00000010, -5, false, '1850-01-01T00:00:00Z', '0001-01-01',
     'O''Neil, "Jr"', ''::BLOB),
    ('default', 123456789012.30, 12.5, 0, NULL, '2026-03-29T01:59:59+02:00', '9999-12-31', '',
     NULL),
    ('default', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('default', 0, 0, 9223372036854775807, true, '2026-12-31T23:59:59.999Z', '2026-02-28',
     E'two\\r\\nlines 😀\\t', '\\xFF'::BLOB);
CREATE TABLE current."usage__events" (_connection VARCHAR, idx BIGINT, value VARCHAR);
CREATE TABLE past.usage AS FROM current.usage LIMIT 1;
CREATE VIEW history.usage AS FROM past.usage UNION ALL FROM current.usage;
CREATE VIEW current.usage_seen AS FROM current.usage;
CREATE TABLE meta.odd AS SELECT 1::HUGEINT AS huge, [1, 2] AS list, {'a': 1} AS struct,
    '{"a": 1}'::JSON AS json, TIME '10:00' AS time, 1.5::DOUBLE AS double;
"""
Exporting = Callable[..., Export]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home in which version 42 is published."""
    made = Home(tmp_path / "home")
    made.prepare()
    file = made.published / "warehouse.v00000042.duckdb"
    with duckdb.connect(file) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(TABLES)
    file.chmod(0o444)
    made.link.symlink_to(file)
    return made


@pytest.fixture
def exporting(home: Home) -> Exporting:
    """Return what exports the home's tables."""

    def export(*tables: str, to: str, out: Path | None = None) -> Export:
        return destinations.export(home, tables, to, out, replace(SYSTEM, now=lambda: NOW))

    return export
