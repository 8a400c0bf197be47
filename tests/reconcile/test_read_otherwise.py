"""Records of a closed month that did not change, and are read otherwise since an upgrade."""

import hashlib
import json
from pathlib import Path

import duckdb
import pytest

from pipelines.app.checkup import run_checks
from pipelines.app.nightly import rebuild_with_books
from pipelines.metadata.tables import Close
from tests.reconcile.months import POSTED, publish_closed, restate
from tests.versions.homes import Stores, home_of

OLDER = """
COPY (
    SELECT rows.* REPLACE (lower(rows.currency) AS currency, if(rows.id = 'u', NULL, rows.amount)
        AS amount)
    FROM read_parquet('{0}') AS rows
) TO '{0}.part' (FORMAT parquet)
"""
STATE = "SELECT state, changed_records, read_otherwise FROM reconciliation.closes"
LINES = """
SELECT cause, side, id, currency, amount_before, amount_now::VARCHAR FROM finance.read_otherwise
"""

closed = home_of(publish_closed)


def read_as_before(folder: Path, stores: Stores) -> None:
    """Write the copy of a month as an older release would: one amount unread, `eur` as sent."""
    file, manifest = folder / "used.parquet", folder / "manifest.json"
    with duckdb.connect() as db:
        db.execute(OLDER.format(file))
    Path(f"{file}.part").replace(file)
    content = json.loads(manifest.read_bytes())
    content["sha256"][file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.chmod(0o600)
    manifest.write_text(json.dumps(content))
    with stores.metadata.transaction() as session:
        for each in session.query(Close):
            each.manifest_sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest()


@pytest.mark.long
def test_a_record_that_did_not_change_is_no_correction(closed: Stores) -> None:
    read_as_before(closed.home.closes / "2026-09" / "001", closed)
    rebuild_with_books(closed)
    assert (
        closed.rows(
            "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated AND is_needed"
        )
        == []
    )
    assert closed.rows(POSTED) == []
    assert closed.rows(STATE) == [("closed", 0, 1)]
    assert closed.rows(LINES) == [("read otherwise", "usage", "u", "EUR", None, "5.00")]
    found = {each.check.code: each for each in run_checks(closed)}
    (finding,) = found["closed_month_read_otherwise"].findings
    assert "2026-09: 1 record did not change" in finding.message
    assert found["closed_month_changed"].findings == ()

    restate(closed, "6.00", "7.00")  # what changes afterwards is a correction of what was signed
    assert closed.rows(POSTED) == [("usage", "u", "EUR", None, "6.00", "6.00", "10")]
    assert closed.rows(STATE) == [("outdated", 1, 0)]
