"""External ids: what is odd about them is said, one thing a partner."""

import duckdb

from pipelines.reconciliation import RULES
from tests.reconciliation.examples import filled, laid_out_empty

RULE = next(rule for rule in RULES if rule.name == "external_id_map")
NOW = [("a", "1"), ("b", "2"), ("c", "2"), ("d", ""), ("e", None), ("f", "7")]
BEFORE = [("a", "1"), ("f", "6"), ("b", "2")]


def test_what_is_odd_is_said() -> None:
    with duckdb.connect() as database:
        laid_out_empty(database)
        now = [{"partner": partner, "external_id": known} for partner, known in NOW]
        ended = {"valid_from": "2026-01-01 00:00:00Z", "valid_to": "2026-02-01 00:00:00Z"}
        before = [{"partner": each, "external_id": known, **ended} for each, known in BEFORE]
        filled(database, "payers", now)
        filled(database, "payer_versions", before)
        database.execute(
            "CREATE TEMP TABLE used_groups AS SELECT connection, partner, month FROM used"
        )
        database.execute("INSERT INTO used_groups VALUES ('default', 'a', DATE '2026-09-01')")
        found = database.sql(
            f"SELECT partner, finding, external_id_before, silent FROM ({RULE.sql}) ORDER BY ALL"
        ).fetchall()
    assert found == [
        ("a", None, None, False),
        ("b", "duplicate", None, True),
        ("c", "duplicate", None, True),
        ("d", "blank", None, True),
        ("e", "blank", None, True),
        ("f", "changed", "6", True),
    ]
