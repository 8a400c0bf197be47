"""The group `reports` in Dagster: one asset a report, its sums and its picture, and no partner."""

import base64
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import published
from assets.definitions import defs
from assets.reports import NONE, key, report
from pipelines.reports import REPORTS
from pipelines.settings import Home
from tests.assets.conftest import TODAY
from tests.reports.conftest import CLOSES, META, RECONCILIATION, made

NAMES = [each.name for each in REPORTS]


def shown(only: str = "") -> dict[str, dict[str, Any]]:
    """Materialize the group, or one of it; return what each materialization says."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("connections", ["default"])
        result = dg.materialize(
            [report],
            instance=instance,
            partition_key=dg.MultiPartitionKey({"connection": "default", "date": str(TODAY)}),
            selection=[key(only)] if only else None,
        )
    made_of = [each.materialization for each in result.all_events if each.is_step_materialization]
    return {
        each.asset_key.path[-1]: {name: told.value for name, told in each.metadata.items()}
        for each in made_of
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    place = Home(tmp_path / "home")
    place.prepare()
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(place.root))
    return place


def test_every_report_is_shown_and_no_partner_is_named(home: Home) -> None:
    file = home.published / "warehouse.v00000042.duckdb"
    made(file, META, RECONCILIATION, CLOSES).close()
    home.link.symlink_to(file)
    found = shown()
    assert sorted(found) == NAMES
    for each in REPORTS:
        told = found[each.name]
        assert told["rows"] == told["dagster/row_count"] > 0
        assert [column.name for column in told["dagster/column_schema"].columns] == [*each.columns]
        words, _, image = told["picture"].rpartition("![")
        assert each.chart
        assert words.strip() == each.chart.words
        encoded = image.partition("data:image/png;base64,")[2].rstrip(")")
        assert base64.b64decode(encoded, validate=True).startswith(b"\x89PNG")
    assert "| -16155812057580869.000 |" in found["revenue_at_risk"]["sums"]
    unsaid = found["reconciliation_pack"]["not evaluated"]
    assert unsaid == "quantity_mismatch: usage.quantity is not mapped"
    assert "window.hit" not in str(found)
    assert "Beta" not in str(found)


def test_one_of_them_can_be_asked_for_and_without_a_file_it_says_so(home: Home) -> None:
    assert not home.link.exists()
    assert shown(only="sync_health") == {"sync_health": {"status": NONE}}


def test_they_come_after_the_published_file_on_its_partitions_in_the_nightly_job() -> None:
    assert {dep.asset_key for spec in report.specs for dep in spec.deps} == {published.KEY}
    assert report.partitions_def == published.published.partitions_def
    assert report.backfill_policy == published.published.backfill_policy
    nightly = defs.resolve_job_def("nightly_sync").asset_layer.executable_asset_keys
    assert {key(name) for name in NAMES} < set(nightly)
