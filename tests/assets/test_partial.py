"""A night of which one list cannot be read: the others are published, and the run says so."""

from pathlib import Path

import duckdb
import httpx

from pipelines.cli.sandbox import Service
from tests.assets.conftest import TODAY, Materialize
from tests.assets.test_chain import why


def test_of_three_streams_one_is_forbidden_and_the_other_two_are_published(
    materialize: Materialize, service: Service, tmp_path: Path
) -> None:
    faults = f"{service.url}/__sandbox__/faults"
    fault = {"name": "scope-revoked", "path": "/v2/usage"}
    httpx.post(faults, json=fault, trust_env=False).raise_for_status()
    try:
        result = materialize()
    finally:
        httpx.delete(faults, trust_env=False)

    assert [each.step_key for each in result.all_events if each.is_step_failure] == [
        "published__warehouse"
    ]
    words = why(result)
    assert f"default|{TODAY}: usage" in words
    assert "403" in words
    assert "billing" not in words
    failed = {
        (each.asset_key.to_user_string(), each.check_name)
        for each in result.get_asset_check_evaluations()
        if not each.passed
    }
    assert failed == {
        ("archive/usage", "read_to_its_end"),
        ("archive/usage", "proven"),
        ("current/usage", "folded"),
    }
    with duckdb.connect(tmp_path / "home" / "warehouse.duckdb", read_only=True) as reader:
        tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'current'"
        names = {name for (name,) in reader.execute(tables).fetchall()}
        assert reader.execute("SELECT count(*) FROM current.billing").fetchone() == (60,)
    assert {"partners", "billing"} <= names
    assert "usage" not in names
